"""Normalization of single code points by BERT's reference, before words are matched.

Every step of the reference maps a code point to zero or more code points, independent of its
neighbours: clean (drop controls, white space to a space), put spaces around ideographs, decompose
canonically (NFD) and drop the marks, lower-case. That is the order of Hugging Face `tokenizers`
0.23; google-research/bert lower-cases first, with the same result for every code point. Only one
step depends on neighbours: NFD sorts runs of marks by their combining class (`ordering_classes`).
"""

import dataclasses
import functools
import unicodedata

import numpy as np

from kbert.text.wordpiece.code_point_classes import (
    DROPPED,
    IDEOGRAPHS,
    NONSPACING_MARKS,
    NUM_CODE_POINTS,
    PUNCTUATION,
    WHITE_SPACE,
    code_points,
    is_member,
)

SPACE = 0x20
# Nothing above decomposes or has case.
_LAST_WITH_CASE_OR_DECOMPOSITION = 0x2FFFF
# Decompositions that are younger than the reference's table (Unicode 9.0): 13.0 and 16.0.
_YOUNGER_DECOMPOSITIONS = (
    "11938 105C9 105E4 11383 11385 1138E 11391 113C5 113C7-113C8 16121-16128 16D68-16D6A"
)
# Lower case that is older than the reference's table (Unicode 17.0) and younger than Python 3.11's
# (14.0): upper-case ranges, step, distance to the lower-case letter.
_YOUNGER_LOWERCASE = (
    ("1C89", 1),
    ("A7CB", 0x264 - 0xA7CB),
    ("A7CC A7CE A7D2 A7D4 A7DA", 1),
    ("A7DC", 0x19B - 0xA7DC),
    ("10D50-10D65", 0x20),
    ("16EA0-16EB8", 0x1B),
)
# Marks that stripping keeps (category Mc, or younger than Unicode 8.0) and NFD may put in order.
_ORDERED_MARKS = (
    "8D4-8E1 1B44 1BAA 1BF2-1BF3 1DFB 302E-302F A953 A9C0 111C0 11235 1134D 11442 11446 116B6 "
    "11C3F 1D165-1D166 1D16D-1D172 1E000-1E006 1E008-1E018 1E01B-1E021 1E023-1E024 1E026-1E02A "
    "1E944-1E94A"
)


@dataclasses.dataclass(frozen=True)
class NormalizationRules:
    """The switches of the reference's normalizer, and their effect on each code point.

    Args:
        lowercase: Whether letters are lower-cased, one code point at a time (so a final capital
            sigma becomes U+03C3, not U+03C2).
        strip_accents: Whether text is decomposed (NFD) and category Mn dropped.
        handle_cjk: Whether each ideograph is a word of its own.
    """

    lowercase: bool
    strip_accents: bool
    handle_cjk: bool

    def dropped(self) -> np.ndarray:
        """Returns which code points are dropped, bool (1114112,)."""
        dropped = is_member(DROPPED)
        if self.strip_accents:
            dropped |= is_member(NONSPACING_MARKS)
        return dropped

    def white_space(self) -> np.ndarray:
        """Returns which code points become a space, bool (1114112,)."""
        return is_member(WHITE_SPACE)

    def padded(self) -> np.ndarray:
        """Returns which code points get spaces around their replacement, bool (1114112,)."""
        if self.handle_cjk:
            return is_member(IDEOGRAPHS)
        return np.zeros(NUM_CODE_POINTS, dtype=bool)

    def isolated(self) -> np.ndarray:
        """Returns which code points of normalized text are separate words, bool (1114112,)."""
        return is_member(PUNCTUATION) | self.padded()

    def replacements(self) -> dict[int, tuple[int, ...]]:
        """Returns the replacements of code points that are neither dropped nor unchanged.

        White space and the spaces around ideographs are not listed here.
        """
        changed: dict[int, tuple[int, ...]] = {}
        marks = frozenset(code_points(NONSPACING_MARKS).tolist())
        decompositions = canonical_decompositions() if self.strip_accents else {}
        lower = lowercase_letters() if self.lowercase else {}
        for point in decompositions.keys() | lower.keys():
            parts = [part for part in decompositions.get(point, (point,)) if part not in marks]
            changed[point] = tuple(low for part in parts for low in lower.get(part, (part,)))
        for point in np.flatnonzero(self.dropped() | self.white_space()).tolist():
            changed.pop(point, None)
        return changed

    def ordering_classes(self) -> dict[int, int]:
        """Returns canonical combining classes of code points that NFD sorts and stripping keeps.

        Source: Unicode Standard Annex 15, canonical ordering algorithm.
        """
        if not self.strip_accents:
            return {}
        marks = code_points(_ORDERED_MARKS).tolist()
        return {mark: unicodedata.combining(chr(mark)) for mark in marks}


@functools.lru_cache(maxsize=1)
def canonical_decompositions() -> dict[int, tuple[int, ...]]:
    """Returns code point -> its full canonical decomposition, if it has one in the reference.

    Decompositions never change once they are assigned (Unicode stability policy), so only those
    younger than the reference's table must be left out.
    """
    younger = frozenset(code_points(_YOUNGER_DECOMPOSITIONS).tolist())
    found = {}
    for point in range(0xC0, _LAST_WITH_CASE_OR_DECOMPOSITION + 1):
        text = chr(point)
        decomposed = unicodedata.normalize("NFD", text)
        if decomposed != text and point not in younger:
            found[point] = tuple(map(ord, decomposed))
    return found


@functools.lru_cache(maxsize=1)
def lowercase_letters() -> dict[int, tuple[int, ...]]:
    """Returns code point -> its lower case, if that differs; only U+0130 becomes two."""
    found = {}
    for point in range(_LAST_WITH_CASE_OR_DECOMPOSITION + 1):
        text = chr(point)
        lower = text.lower()
        if lower != text:
            found[point] = tuple(map(ord, lower))
    for ranges, distance in _YOUNGER_LOWERCASE:
        for point in code_points(ranges).tolist():
            found[point] = (point + distance,)
    return found
