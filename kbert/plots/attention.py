"""Attention probabilities of tokens, as a heat map."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kbert.plots.figures import new_figure
from kbert.plots.labels import label_style, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INCHES_PER_TOKEN = 0.16


def plot_attention(
    queries: Sequence[str], keys: Sequence[str], scores: np.ndarray, title: str = ""
) -> "Figure":
    """Draws attention probabilities: a row for each query, a column for each key.

    Source: Bahdanau et al. 2015, figure 3.

    Args:
        queries: the tokens that attend, T.
        keys: the tokens that are attended to, S.
        scores: (T, S), each row a distribution.
        title: title of the figure.

    Raises:
        ValueError: `scores` has another shape.
    """
    if np.shape(scores) != (len(queries), len(keys)):
        raise ValueError(
            f"`scores` must have the shape {(len(queries), len(keys))}, queries by keys. "
            f"Received: {np.shape(scores)}"
        )
    width = max(4.0, _INCHES_PER_TOKEN * len(keys) + 1.5)
    height = max(3.5, _INCHES_PER_TOKEN * len(queries) + 1.2)
    figure, axes = new_figure(width, height)
    image = axes.imshow(scores, cmap="viridis", vmin=0.0, aspect="auto", interpolation="nearest")
    queries, keys = readable(queries), readable(keys)
    axes.set_xticks(range(len(keys)), keys, rotation=90, **label_style(keys, 7))
    axes.set_yticks(range(len(queries)), queries, **label_style(queries, 7))
    axes.set_xlabel("attended to")
    axes.set_ylabel("attends")
    axes.set_title(title, fontsize=10)
    figure.colorbar(image, ax=axes, fraction=0.03, pad=0.01)
    return figure
