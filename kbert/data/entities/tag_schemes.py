"""Schemes that write entities as one tag a word: BIO (IOB2), IOB1 and IOBES (BIOES, BILOU).

BIO: B- begins every entity, I- continues it. IOB1: I- begins and continues; B- begins only an
entity that directly follows another of its type. IOBES: B- begins, I- continues, E- ends, S- is an
entity of one word; BILOU writes L for E and U for S. Tags without a type ("B", "I") are entities of
type "".

Sources: Ramshaw and Marcus, "Text Chunking using Transformation-Based Learning" (1995), IOB1; Tjong
Kim Sang and Veenstra, "Representing Text Chunks" (1999), IOB2; Ratinov and Roth, "Design Challenges
and Misconceptions in Named Entity Recognition" (2009), BILOU.
"""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SCHEMES = ("bio", "iob1", "iobes")
_ALIASES = {"iob2": "bio", "bioes": "iobes", "bilou": "iobes", "bilu": "iobes"}
_LETTERS = {"bio": "BIO", "iob1": "BIO", "iobes": "BIESO"}
_TAG = re.compile(r"O|[BIESLU](?:-(?P<type>.+))?", re.DOTALL)
_LETTER_OF_BILOU = {"L": "E", "U": "S"}
Span = tuple[str, int, int]


class Tag(NamedTuple):
    """A parsed tag: B, I, O, E or S, and the type of the entity, "" where there is none."""

    letter: str
    type: str


def parse_tag(tag: str) -> Tag:
    """Parses "O", or one of B, I, E, S, L, U, alone or with "-" and a type; L becomes E, U S."""
    match = _TAG.fullmatch(tag)
    if match is None:
        raise ValueError(
            "`tag` must be O, or B, I, E or S (L or U in BILOU) with '-' and a type. Received: "
            f"tag={tag!r}"
        )
    return Tag(_LETTER_OF_BILOU.get(tag[0], tag[0]), match["type"] or "")


def scheme_name(scheme: str) -> str:
    """Returns "bio", "iob1" or "iobes" for a scheme by any of its names, in any case."""
    name = _ALIASES.get(scheme.lower(), scheme.lower())
    if name not in SCHEMES:
        raise ValueError(f"`scheme` must be one of {SCHEMES}. Received: scheme={scheme!r}")
    return name


def impossible_tag(tags: Sequence[str], scheme: str) -> tuple[int, str] | None:
    """Returns the first tag of a sentence that a scheme does not allow there.

    It is the 0-based index of the word and the expected tags in words, or None if all tags are
    allowed. (A B- or I- of IOBES that is not continued is found at its own word.)
    """
    name = scheme_name(scheme)
    parsed = [parse_tag(tag) for tag in tags]
    for i, tag in enumerate(parsed):
        if tag.letter not in _LETTERS[name]:
            return i, f"a tag of {name} must begin with one of {', '.join(_LETTERS[name])}"
        before = parsed[i - 1] if i else Tag("O", "")
        after = parsed[i + 1] if i + 1 < len(parsed) else Tag("O", "")
        expected = _expected(tag, before, after, name)
        if expected is not None:
            return i, expected
    return None


def spans_of(tags: Sequence[str], scheme: str) -> list[Span]:
    """Returns the entities of a sentence, from left to right, as (type, first word, word behind the
    last).

    Impossible tags are a ValueError.
    """
    wrong = impossible_tag(tags, scheme)
    if wrong is not None:
        word, expected = wrong
        raise ValueError(f"`tags`, word {word}: {expected}. Received: {tags[word]!r}")
    parsed = [parse_tag(tag) for tag in tags]
    spans: list[Span] = []
    first = 0
    before = Tag("O", "")
    for i, tag in enumerate([*parsed, Tag("O", "")]):
        starts = _starts(tag, before)
        if before.letter != "O" and (starts or tag.letter == "O"):
            spans.append((before.type, first, i))
        if starts:
            first = i
        before = tag
    return spans


def tags_of(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """Returns the `length` tags that write entities, which may come in any order.

    A ValueError says that spans are empty, overlap or lie outside of the sentence.
    """
    name = scheme_name(scheme)
    tags = ["O"] * length
    end_before = 0
    type_before: str | None = None
    for span in sorted(spans, key=lambda span: span[1:]):
        type, first, end = span
        if not end_before <= first < end <= length:
            raise ValueError(
                f"`spans` must hold at least a word each, lie within {length} words, and not "
                f"overlap. Received: {span}, where words up to {end_before} are taken"
            )
        adjacent = type_before == type and end_before == first
        for i in range(first, end):
            letter = _letter(name, i == first, i + 1 == end, adjacent)
            tags[i] = f"{letter}-{type}" if type else letter
        end_before, type_before = end, type
    return tags


def convert(tags: Sequence[str], source: str, target: str) -> list[str]:
    """Converts the tags of a sentence from one scheme to another, or the same; see `spans_of`."""
    return tags_of(spans_of(tags, source), len(tags), target)


def detect_scheme(all_tags: Iterable[Sequence[str]]) -> str:
    """Returns the scheme that tags follow.

    Tags with E- or S- are IOBES. Others are BIO or IOB1, whichever makes fewer sentences
    impossible, and BIO where both make as many; so a few mistakes do not hide the scheme.
    """
    impossible = {"bio": 0, "iob1": 0}
    for tags in all_tags:
        if any(parse_tag(tag).letter in "ES" for tag in tags):
            return "iobes"
        for name in impossible:
            impossible[name] += impossible_tag(tags, name) is not None
    return "iob1" if impossible["iob1"] < impossible["bio"] else "bio"


def _expected(tag: Tag, before: Tag, after: Tag, name: str) -> str | None:
    """Returns what is expected instead of `tag` between two others; None where it is allowed."""
    joined = before.letter != "O" and before.type == tag.type
    if name == "bio" and tag.letter == "I" and not joined:
        return f"I- must follow B- or I- of its type, not {_shown(before)}"
    if name == "iob1" and tag.letter == "B" and not joined:
        return f"B- must follow a word of the same type, not {_shown(before)}"
    if name != "iobes":
        return None
    if tag.letter in "IE" and not (joined and before.letter in "BI"):
        return f"{tag.letter}- must follow B- or I- of its type, not {_shown(before)}"
    if tag.letter in "BI" and not (after.letter in "IE" and after.type == tag.type):
        return f"{tag.letter}- must go on with I- or E- of its type, not {_shown(after)}"
    return None


def _starts(tag: Tag, before: Tag) -> bool:
    """Returns whether an entity begins at `tag`, which its scheme allows behind `before`."""
    if tag.letter == "O":
        return False
    return tag.letter in "BS" or before.letter in "OES" or before.type != tag.type


def _letter(name: str, is_first: bool, is_last: bool, adjacent: bool) -> str:
    if name == "iob1":
        return "B" if is_first and adjacent else "I"
    if name == "iobes" and is_last:
        return "S" if is_first else "E"
    return "B" if is_first else "I"


def _shown(tag: Tag) -> str:
    return f"{tag.letter}-{tag.type}" if tag.type else tag.letter
