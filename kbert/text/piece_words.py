"""Pieces joined to words, for display.

Shapes: P pieces, W words.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

_SPACE = "\u2581"  # how a SentencePiece model writes a space
_END = "</s>"
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# Scripts without spaces between words, by the first word of a letter's name in Unicode. Pieces are
# the best guess of their words.
_WITHOUT_SPACES = frozenset(
    "CJK HIRAGANA KATAKANA KATAKANA-HIRAGANA BOPOMOFO THAI LAO KHMER MYANMAR TIBETAN".split()
)


@dataclass(frozen=True)
class PieceWords:
    """W words, and for each of the P pieces the index of its word, nondecreasing."""

    words: list[str]
    numbers: list[int]

    def summed(self, values: np.ndarray) -> np.ndarray:
        """Sums (..., P) over the pieces of each word, to (..., W)."""
        return np.asarray(values) @ self._members()

    def averaged(self, values: np.ndarray) -> np.ndarray:
        """Averages (P, ...) over the pieces of each word, to (W, ...)."""
        members = self._members()
        return (members / members.sum(axis=0)).T @ np.asarray(values)

    def _members(self) -> np.ndarray:
        """Returns (P, W): 1 where a piece belongs to a word."""
        return np.equal.outer(self.numbers, np.arange(len(self.words))).astype("float64")


def piece_words(pieces: Sequence[str]) -> PieceWords:
    """Joins the pieces of a SentencePiece model to words; "</s>", the end, is a word.

    A word begins at a space. Punctuation after a word is a word of its own, but not within one
    ("don't", "3.5"). Scripts without spaces between words keep their pieces; a combining mark stays
    with what precedes it. Bytes become the characters that they encode.
    """
    groups: list[list[str]] = []
    numbers = []
    for piece, following in zip(pieces, (*pieces[1:], _SPACE)):
        if not groups or _begins(groups[-1], piece, following):
            groups.append([])
        groups[-1].append(piece)
        numbers.append(len(groups) - 1)
    return PieceWords([_spelled(group) for group in groups], numbers)


def _begins(before: list[str], piece: str, following: str) -> bool:
    """Returns whether a piece begins a word, after the pieces of another one."""
    if _END in (piece, before[-1]) or piece.startswith(_SPACE):
        return True
    text = _spelled(before)
    if not text or _BYTE.fullmatch(piece) or unicodedata.category(piece[0]).startswith("M"):
        return False
    if not any(map(str.isalnum, piece)):
        return not (following[0].isalnum() and text[-1].isalnum())
    return _is_without_spaces(piece[0]) or _is_without_spaces(text[-1])


def _is_without_spaces(character: str) -> bool:
    return unicodedata.name(character, "?").split()[0] in _WITHOUT_SPACES


def _spelled(pieces: list[str]) -> str:
    spelled = b""
    for piece in pieces:
        byte = _BYTE.fullmatch(piece)
        spelled += bytes.fromhex(byte[1]) if byte else piece.replace(_SPACE, " ").encode()
    return spelled.decode("utf-8", "replace").strip()
