"""The normalizer of one vocabulary as a small table: code point -> code points to match.

Only the letters of the vocabulary need their own entry. Every other letter becomes
`UNKNOWN_LETTER`: it makes its word [UNK] whichever letter it is. So the table is small, and letters
may be renamed where tensorflow-text's splitter disagrees with the reference about them. Words of
their own (punctuation, ideographs) get spaces around them, which every splitter respects.

Private-use code points represent what has no letter: the reference drops them, so text has none.
"""

import dataclasses
import unicodedata

import numpy as np

from kbert.text.vocabulary import Vocabulary
from kbert.text.wordpiece.normalization import (
    IDEOGRAPHS,
    NUM_CODE_POINTS,
    SPACE,
    NormalizationRules,
    is_member,
)

UNKNOWN_LETTER = 0xE000  # plus the canonical combining class, of the few that have one
NUM_ORDERED_CODES = 0x200
_ORDERED_MARK = 0xE100  # plus the mark's number: marks of the vocabulary that NFD may sort
_NEVER = 0xE200
_SPECIAL = 0xE210  # two for each special token: its first and its last character
_RENAMED = 0xF0000
# tensorflow-text's splitter also isolates the block that the reference leaves out.
_SPLITTER_IDEOGRAPHS = f"{IDEOGRAPHS} 2B820-2B91F"

PAGE_BITS = 7
PAGE_SIZE = 1 << PAGE_BITS

# Control characters (dropped from the text of users) that mark the ends of a special token.
_SPECIAL_ENDS = ("\x02\x03", "\x04\x05", "\x06\x07", "\x08\x0e", "\x0f\x10")
SPECIAL_FILLER = "\x01"


@dataclasses.dataclass(frozen=True)
class CodePointTable:
    """A two-level table: `replacement(c) = values[splits[e]:splits[e + 1]]` with
    `e = entries[page_starts[c >> 7] + (c & 127)]`.
    """

    page_starts: np.ndarray  # Offset of each page of 128 code points in `entries`, int32 (8704,)
    entries: np.ndarray  # Index of the replacement, int32 (pages * 128,)
    splits: np.ndarray  # Row splits of the replacements, int64 (replacements + 1,)
    values: np.ndarray  # The replacements, concatenated, int32
    # Canonical combining class of U+E000 + i, int32 (512,); all 0 if accents are kept.
    ordering_classes: np.ndarray
    model_tokens: list[str]  # The vocabulary for the matcher, in the order of the ids
    unknown_token: str  # The name of [UNK] in `model_tokens`


def special_markers(vocabulary: Vocabulary) -> dict[str, str]:
    """Returns special token -> the string of control characters, equally long, that replaces it."""
    return {
        token: ends[0] + SPECIAL_FILLER * (len(token) - 2) + ends[1]
        for token, ends in zip(vocabulary.special_tokens.names, _SPECIAL_ENDS, strict=True)
        if token in vocabulary
    }


def build_table(
    vocabulary: Vocabulary, rules: NormalizationRules, special_tokens_in_text: bool
) -> CodePointTable:
    """Builds the table of `vocabulary` under `rules`.

    Without `special_tokens_in_text` the markers of `special_markers` are control characters like
    any other; with it they become their tokens.
    """
    alphabet = set(map(ord, set().union(*vocabulary.tokens)))
    codes = _codes(alphabet, rules)
    isolated, padded = rules.isolated(), rules.padded()
    ordering = rules.ordering_classes()
    numbers: dict[tuple[int, ...], int] = {}

    def number(replacement: tuple[int, ...]) -> int:
        return numbers.setdefault(replacement, len(numbers))

    def code_of(point: int) -> tuple[int, ...]:
        code = codes.get(point, UNKNOWN_LETTER + ordering.get(point, 0))
        return (SPACE, code, SPACE) if isolated[point] else (code,)

    entries = np.full(NUM_CODE_POINTS, number((UNKNOWN_LETTER,)), dtype=np.int32)
    entries[isolated] = number((SPACE, UNKNOWN_LETTER, SPACE))
    replacements = rules.replacements()
    own_entry = alphabet | set(range(0x80)) | ordering.keys()
    for point in sorted(own_entry - replacements.keys()):
        entries[point] = number(code_of(point))
    for point, parts in replacements.items():
        replacement = tuple([code for part in parts for code in code_of(part)])
        if padded[point]:
            replacement = (SPACE, *replacement, SPACE)
        entries[point] = number(replacement)
    entries[rules.dropped()] = number(())
    entries[rules.white_space()] = number((SPACE,))
    markers = special_markers(vocabulary) if special_tokens_in_text else {}
    for index, marker in enumerate(markers.values()):
        entries[ord(marker[0])] = number((SPACE, _SPECIAL + 2 * index))
        entries[ord(marker[-1])] = number((_SPECIAL + 2 * index + 1, SPACE))

    classes = np.zeros(NUM_ORDERED_CODES, dtype=np.int32)
    for point, order in ordering.items():
        classes[codes.get(point, UNKNOWN_LETTER + order) - UNKNOWN_LETTER] = order
    pages = [page.tobytes() for page in entries.reshape(-1, PAGE_SIZE)]
    starts = {page: i * PAGE_SIZE for i, page in enumerate(dict.fromkeys(pages))}
    model_tokens = _model_tokens(vocabulary, codes, rules)
    return CodePointTable(
        page_starts=np.array([starts[page] for page in pages], np.int32),
        entries=np.frombuffer(b"".join(starts), np.int32),
        splits=np.cumsum([0, *map(len, numbers)], dtype=np.int64),
        values=np.array([code for replacement in numbers for code in replacement], np.int32),
        ordering_classes=classes,
        model_tokens=model_tokens,
        unknown_token=model_tokens[vocabulary.unknown_id],
    )


def _codes(alphabet: set[int], rules: NormalizationRules) -> dict[int, int]:
    """Returns known code point -> its code: itself, unless the splitter may isolate it.

    tensorflow-text may see no letter in some: it uses ICU, whose version varies.
    """
    isolated, ideographs = rules.isolated(), is_member(_SPLITTER_IDEOGRAPHS)
    ordering = {mark: i for i, mark in enumerate(sorted(rules.ordering_classes()))}
    codes = {}
    for number, point in enumerate(sorted(alphabet)):
        is_letter = unicodedata.category(chr(point))[0] in "LMNS" and not ideographs[point]
        if point in ordering:
            codes[point] = _ORDERED_MARK + ordering[point]
        elif point >= 0x80 and not isolated[point] and not is_letter:
            codes[point] = _RENAMED + number
        else:
            codes[point] = point
    return codes


def _model_tokens(
    vocabulary: Vocabulary, codes: dict[int, int], rules: NormalizationRules
) -> list[str]:
    """Returns tokens in the matcher's code points; a unique name for those no text can contain."""
    specials = {token: index for index, token in enumerate(special_markers(vocabulary))}
    isolated, gone = rules.isolated(), rules.dropped() | rules.white_space()
    # Sets of the few that the vocabulary has: an array look-up for each token is slow.
    alone = {point for point in codes if isolated[point]}
    never = {point for point in codes if gone[point]}
    tokens = []
    for number, token in enumerate(vocabulary.tokens):
        prefix = "##" if token.startswith("##") and len(token) > 2 else ""
        if token[len(prefix) :].isalnum() and token.isascii():  # most of them stay as they are
            tokens.append(token)
            continue
        points = list(map(ord, token[len(prefix) :]))
        is_word = alone.isdisjoint(points) or (len(points) == 1 and not prefix)
        if token in specials:
            # Reached only through the markers of `special_markers`.
            code = _SPECIAL + 2 * specials[token]
            tokens.append(chr(code) + chr(code + 1))
        elif is_word and never.isdisjoint(points):
            tokens.append(prefix + "".join([chr(codes[point]) for point in points]))
        else:
            tokens.append(f"{chr(_NEVER)}{number}")
    return tokens
