"""A picture of the adapters that each layer of an encoder with AdapterFusion listens to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kbert.plots.figures import label_style, longest_inches, new_figure, readable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HEIGHT = 0.34  # inches of a cell
_NARROW, _WIDE = 0.66, 1.1  # and its width, as far as names need it
_SLOPE = 40  # degrees of names that are longer still
_BAR = 0.12  # inches of the width of the scale
_SIZE = 9.0  # points of labels
_DARK = 0.65  # weight above which the number in a cell is white


def plot_adapter_weights(adapters: Sequence[str], weights: np.ndarray, title: str = "") -> "Figure":
    """Draws the mean weight of each adapter in each layer: a row a layer, the first at the top.

    Weights are shades, the darker the larger, from 0 to 1 in every picture, with the number in each
    cell; the largest one of a layer is bold.

    Args:
        adapters: names of N adapters, a column each.
        weights: (L, N), of L layers; those of a layer add up to 1.
        title: what stands above, one line or more.

    Source: Pfeiffer et al. 2021, figure 5.
    """
    if np.ndim(weights) != 2 or not np.size(weights) or np.shape(weights)[1] != len(adapters):
        raise ValueError(
            f"`weights` must have the shape (layers, {len(adapters)}), layers by adapters. "
            f"Received: {np.shape(weights)}"
        )
    layers, names = len(weights), readable(adapters)
    needed = longest_inches(names, _SIZE)
    is_steep = needed + 0.1 > _WIDE
    cell = _NARROW if is_steep else max(_NARROW, needed + 0.1)
    above = needed * np.sin(np.radians(_SLOPE)) if is_steep else 0.0
    lines = title.split("\n") if title else [""]
    width = max(cell * len(names), longest_inches(lines, _SIZE)) + (1.3 if is_steep else 1.0)
    figure, axes = new_figure(width, _HEIGHT * layers + above + 0.4 + 0.17 * len(lines))
    image = axes.imshow(weights, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto")
    slope = {"rotation": _SLOPE, "ha": "left", "rotation_mode": "anchor"} if is_steep else {}
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(names)), names, **slope, **label_style(names, _SIZE))
    axes.set_yticks(range(layers), [str(layer + 1) for layer in range(layers)], fontsize=_SIZE)
    axes.set_ylabel("layer", fontsize=_SIZE)
    axes.set_title(title, pad=9, **label_style(lines, _SIZE))
    _divide(axes, weights)
    bar = axes.inset_axes((1.0 + _BAR / (cell * len(names)), 0.0, _BAR / (cell * len(names)), 1.0))
    figure.colorbar(image, cax=bar, ticks=(0.0, 0.5, 1.0))
    bar.tick_params(labelsize=7, length=0)
    bar.spines[:].set_visible(False)
    return figure


def _divide(axes: Any, weights: np.ndarray) -> None:
    """Writes the number of each cell, and draws white lines between the cells."""
    for (layer, adapter), weight in np.ndenumerate(weights):
        axes.text(
            adapter,
            layer,
            f"{weight:.2f}",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if weight > _DARK else "black",
            fontweight="bold" if weight == np.max(weights[layer]) else "normal",
        )
    for ticks, count in zip((axes.set_xticks, axes.set_yticks), np.shape(weights)[::-1]):
        ticks(np.arange(1, count) - 0.5, minor=True)
    axes.grid(which="minor", color="white", linewidth=2)
    axes.tick_params(which="both", length=0)
    axes.spines[:].set_visible(False)
