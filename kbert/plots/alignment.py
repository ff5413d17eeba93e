"""Word alignments of source and translation, as a heat map."""

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kbert.plots.figures import new_figure
from kbert.plots.labels import label_style, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES_PER_WORD = 0.28
# A longer side is many thousand pixels; the cells of a very long text are smaller instead.
_LONGEST_SIDE = 40.0
_POINTS_PER_INCH = 72


def plot_alignment(
    source: Sequence[str], target: Sequence[str], weights: np.ndarray, title: str = ""
) -> "Figure":
    """Draws an alignment: a column for each source word, a row for each of the translation.

    The weights are shades of grey, from black for 0 to white for the largest one.

    Source: Bahdanau et al. 2015, figure 3.

    Args:
        source: the S source words.
        target: the T words of the translation.
        weights: (T, S), each row a distribution.
        title: title of the figure.

    Raises:
        ValueError: `weights` has another shape, or there is no target word.
    """
    if np.shape(weights) != (len(target), len(source)):
        raise ValueError(
            f"`weights` must have the shape {(len(target), len(source))}, target by source. "
            f"Received: {np.shape(weights)}"
        )
    if not len(target):
        raise ValueError("`target` must have a word. Received: none, as of an empty translation")
    source, target = readable(source), readable(target)
    cell = min(_INCHES_PER_WORD, _LONGEST_SIDE / max(len(source), len(target)))
    size = min(9.0, 0.6 * cell * _POINTS_PER_INCH)
    longest = [max(map(_ems, side)) * size / _POINTS_PER_INCH for side in (target, source)]
    width = max(cell * len(source) + longest[0] + 0.9, 0.07 * len(title) + 0.3)
    figure, axes = new_figure(width, cell * len(target) + longest[1] + (0.55 if title else 0.3))
    image = axes.imshow(
        weights, cmap="gray", vmin=0.0, vmax=np.max(weights), interpolation="nearest"
    )
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source)), source, rotation=90, **label_style(source, size))
    axes.set_yticks(range(len(target)), target, **label_style(target, size))
    axes.tick_params(length=0)
    if title:
        figure.suptitle(title, fontsize=9, parse_math=False)
    bar = axes.inset_axes((1.0 + 0.1 / (cell * len(source)), 0.0, 0.12 / (cell * len(source)), 1.0))
    figure.colorbar(image, cax=bar, ticks=(0.0, np.max(weights)), format="%.2f")
    bar.tick_params(labelsize=7)
    return figure


def _ems(text: str) -> float:
    """Estimates the width of a text in units of its font size."""
    return sum(1.0 if unicodedata.east_asian_width(c) in "WF" else 0.55 for c in text)
