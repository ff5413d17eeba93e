"""Pictures of an image with the words of its caption, each where it was looked for."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kbert.plots.figures import label_style, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = 5
_PANEL = 1.9  # inches of a panel's side
_TITLE = 0.32


def plot_caption(
    pixels: np.ndarray, words: Sequence[str], maps: np.ndarray, caption: str = ""
) -> "Figure":
    """Draws an image, and for each word of its caption the image again under the word's map.

    What was looked at is bright, from black for no weight to the image itself for the largest one.

    Args:
        pixels: uint8 (H, W, 3).
        words: W words.
        maps: (W, h, w), the weights of each.
        caption: the title.

    Source: Xu et al. 2015, figure 3.
    """
    if np.ndim(maps) != 3 or len(maps) != len(words) or not len(words):
        raise ValueError(
            f"`maps` must have a map for each word, at least one. Received: {len(words)} words, "
            f"maps of shape {np.shape(maps)}"
        )
    from matplotlib.figure import Figure

    columns = min(_COLUMNS, len(words) + 1)
    rows = -(-(len(words) + 1) // columns)
    size = (columns * _PANEL, rows * (_PANEL + _TITLE) + _TITLE)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).reshape(-1)
    for axes in panels:
        axes.axis("off")
    panels[0].imshow(pixels)
    for axes, word, weights in zip(panels[1:], readable(words), maps):
        axes.imshow(pixels)
        edges = (-0.5, pixels.shape[1] - 0.5, pixels.shape[0] - 0.5, -0.5)
        axes.imshow(_shade(weights), extent=edges, interpolation="bilinear")
        axes.set_title(word, **label_style([word], 10), pad=3)
    (title,) = readable([caption])
    if title:
        figure.suptitle(title, **label_style([title], 10), wrap=True)
    return figure


def _shade(weights: np.ndarray) -> np.ndarray:
    """Returns black pixels (h, w, 4), the more opaque the less weight a place has."""
    most = float(np.max(weights)) or 1.0
    shade = np.zeros((*weights.shape, 4), "float32")
    shade[..., 3] = 0.8 * (1.0 - weights / most)
    return shade
