"""Tokens as labels of a figure."""

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

from kbert.plots.fonts import families_for


def readable(tokens: Iterable[str]) -> list[str]:
    """Returns tokens with control characters escaped, so that none breaks a line or a figure."""
    return ["".join(map(_shown, token)) for token in tokens]


def label_style(labels: Sequence[str], size: float) -> dict[str, Any]:
    """Returns matplotlib's text properties of labels: fonts with their letters, no math parsing.

    Args:
        labels: the labels.
        size: font size in points.
    """
    # A "$" would begin a formula.
    return {"fontsize": size, "fontfamily": families_for(labels), "parse_math": False}


def _shown(character: str) -> str:
    if unicodedata.category(character) not in ("Cc", "Cs"):
        return character
    return character.encode("unicode_escape").decode("ascii")
