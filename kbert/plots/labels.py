"""Tokens as labels of a picture."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from kbert.plots.fonts import families_for


def readable(tokens: Iterable[str]) -> list[str]:
    """Tokens with control characters spelled out, so that none breaks a line or a picture."""
    return ["".join(map(_shown, token)) for token in tokens]


def label_style(labels: Sequence[str], size: float) -> dict[str, Any]:
    """How matplotlib is to write labels: in fonts that have their letters, with no mathematics.

    Args:
        labels: the labels.
        size: points.
    """
    # A "$" would begin a formula.
    return {"fontsize": size, "fontfamily": families_for(labels), "parse_math": False}


def _shown(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cs"):
        return character
    return character.encode("unicode_escape").decode("ascii")
