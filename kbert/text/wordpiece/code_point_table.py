"""The normalizer of one vocabulary as a small table: code point -> code points to match.

Only the letters of the vocabulary need their own entry. Every other letter becomes
`UNKNOWN_LETTER`: it makes its word [UNK] whichever letter it is. So the table is small, and letters
may be renamed where tensorflow-text's splitter disagrees with the reference about them. Words of
their own (punctuation, ideographs) get spaces around them, which every splitter respects.

Private-use code points represent what has no letter: the reference drops them, so text has none.
"""

import dataclasses
import functools
import unicodedata

import numpy as np

from kbert.text.wordpiece.normalization import (
    IDEOGRAPHS,
    NUM_CODE_POINTS,
    SPACE,
    NormalizationRules,
    is_member,
)
from kbert.text.wordpiece.vocabulary import SPECIAL_TOKENS, Vocabulary

UNKNOWN_LETTER = 0xE000  # plus the canonical combining class, of the few that have one
NUM_ORDERED_CODES = 0x200
_ORDERED_MARK = 0xE100  # plus the mark's number: marks of the vocabulary that NFD may sort
_NEVER = 0xE200
_SPECIAL = 0xE210  # two for each special token: its first and its last character
_RENAMED = 0xF0000
# tensorflow-text's splitter isolates these too; see IDEOGRAPHS.
_SPLITTER_IDEOGRAPHS = frozenset(range(0x2B820, 0x2B920))

PAGE_BITS = 7
PAGE_SIZE = 1 << PAGE_BITS

# Control characters (dropped from the text of users) that mark the ends of a special token.
_SPECIAL_ENDS = (
    ("\x02", "\x03"),
    ("\x04", "\x05"),
    ("\x06", "\x07"),
    ("\x08", "\x0e"),
    ("\x0f", "\x10"),
)
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
    markers = {}
    for token, (first, last) in zip(SPECIAL_TOKENS, _SPECIAL_ENDS, strict=True):
        if token in vocabulary:
            markers[token] = first + SPECIAL_FILLER * (len(token) - 2) + last
    return markers


def build_table(
    vocabulary: Vocabulary, rules: NormalizationRules, special_tokens_in_text: bool
) -> CodePointTable:
    """Builds the table of `vocabulary` under `rules`.

    Args:
        vocabulary: The tokens.
        rules: The normalizer's switches.
        special_tokens_in_text: Whether the markers of `special_markers` become their tokens. If
            not, they are control characters like any other.
    """
    alphabet = {ord(letter) for token in vocabulary.tokens for letter in token}
    codes = _codes(alphabet, rules)
    isolated = rules.isolated()
    padded = rules.padded()
    ordering = rules.ordering_classes()
    dropped_or_space = rules.dropped() | rules.white_space()

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
    for point, parts in sorted(replacements.items()):
        replacement = tuple(code for part in parts for code in code_of(part))
        if padded[point]:
            replacement = (SPACE, *replacement, SPACE)
        entries[point] = number(replacement)
    entries[rules.dropped()] = number(())
    entries[rules.white_space()] = number((SPACE,))
    markers = special_markers(vocabulary) if special_tokens_in_text else {}
    for index, marker in enumerate(markers.values()):
        entries[ord(marker[0])] = number((SPACE, _SPECIAL + 2 * index))
        entries[ord(marker[-1])] = number((_SPECIAL + 2 * index + 1, SPACE))

    page_starts, pages = _paged(entries)
    lengths = [len(replacement) for replacement in numbers]
    model_tokens = _model_tokens(vocabulary, codes, isolated, dropped_or_space)
    return CodePointTable(
        page_starts=page_starts,
        entries=pages,
        splits=np.cumsum([0, *lengths], dtype=np.int64),
        values=np.array([code for replacement in numbers for code in replacement], np.int32),
        ordering_classes=_ordering_of_codes(ordering, codes),
        model_tokens=model_tokens,
        unknown_token=model_tokens[vocabulary.unknown_id],
    )


def _codes(alphabet: set[int], rules: NormalizationRules) -> dict[int, int]:
    """Returns known code point -> its code: itself, unless the splitter may isolate it."""
    isolated = rules.isolated()
    ordering = rules.ordering_classes()
    codes = {}
    for number, point in enumerate(sorted(alphabet)):
        if point in ordering:
            codes[point] = _ORDERED_MARK + sorted(ordering).index(point)
        elif point >= 0x80 and not isolated[point] and _splitter_may_isolate(point):
            codes[point] = _RENAMED + number
        else:
            codes[point] = point
    return codes


@functools.lru_cache(maxsize=1)
def _ideographs() -> np.ndarray:
    return is_member(IDEOGRAPHS)


def _splitter_may_isolate(point: int) -> bool:
    """Returns whether tensorflow-text may see no letter here: it uses ICU, whose version varies."""
    is_letter = unicodedata.category(chr(point))[0] in "LMNS"
    return not is_letter or bool(_ideographs()[point]) or point in _SPLITTER_IDEOGRAPHS


def _ordering_of_codes(ordering: dict[int, int], codes: dict[int, int]) -> np.ndarray:
    """Returns the combining classes of U+E000 ... U+E1FF, int32 (512,)."""
    classes = np.zeros(NUM_ORDERED_CODES, dtype=np.int32)
    for point, combining_class in ordering.items():
        code = codes.get(point, UNKNOWN_LETTER + combining_class)
        classes[code - UNKNOWN_LETTER] = combining_class
    return classes


def _paged(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Splits into pages and keeps each distinct page once: (page_starts, concatenated pages)."""
    starts: dict[bytes, int] = {}
    distinct: list[np.ndarray] = []
    page_starts = np.zeros(NUM_CODE_POINTS // PAGE_SIZE, dtype=np.int32)
    for index, page in enumerate(entries.reshape(-1, PAGE_SIZE)):
        key = page.tobytes()
        if key not in starts:
            starts[key] = len(distinct) * PAGE_SIZE
            distinct.append(page)
        page_starts[index] = starts[key]
    return page_starts, np.concatenate(distinct)


def _model_tokens(
    vocabulary: Vocabulary,
    codes: dict[int, int],
    isolated: np.ndarray,
    dropped_or_space: np.ndarray,
) -> list[str]:
    """Returns tokens in the matcher's code points; a unique name for those no text can contain."""
    specials = {token: index for index, token in enumerate(special_markers(vocabulary))}
    # Sets of the few that the vocabulary has: an array look-up for each token is slow.
    alone = {point for point in codes if isolated[point]}
    never = {point for point in codes if dropped_or_space[point]}
    tokens = []
    for number, token in enumerate(vocabulary.tokens):
        prefix = "##" if token.startswith("##") and len(token) > 2 else ""
        points = list(map(ord, token[len(prefix) :]))
        if token in specials:
            # Reached only through the markers of `special_markers`.
            code = _SPECIAL + 2 * specials[token]
            tokens.append(chr(code) + chr(code + 1))
        elif _can_be_spelled(points, bool(prefix), alone, never):
            tokens.append(prefix + "".join([chr(codes[point]) for point in points]))
        else:
            tokens.append(f"{chr(_NEVER)}{number}")
    return tokens


def _can_be_spelled(
    points: list[int], continues: bool, alone: set[int], never: set[int]
) -> bool:
    """Returns whether a word of the reference can contain these code points in sequence."""
    if not never.isdisjoint(points):
        return False
    return alone.isdisjoint(points) or (len(points) == 1 and not continues)
