"""Pictures of trainings, attention, word alignments and the probabilities of an answer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from kbert.plots.figures import (
    POINTS_PER_INCH,
    label_style,
    longest_inches,
    new_figure,
    readable,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = {"training": ("#1f77b4", "--"), "validation": ("#d62728", "-")}
_WIDTH, _HEIGHT, _MARGIN = 6.0, 2.0, 0.3  # inches; height of one metric
_FEW = 8  # points, below which markers are drawn: a single point is no line


def plot_curves(
    records: Sequence[Mapping[str, Any]],
    metrics: Sequence[str],
    place: str,
    kept: Sequence[int] = (),
    losses: Sequence[str] = ("loss",),
) -> "Figure":
    """Draws metrics of training and validation, one above the other, over the steps or epochs.

    The losses of training and validation share a panel, even under different names.

    Args:
        records: `epochs` or `intervals` of a run's metrics.json: each has its number under `place`,
            and {name: value} under "training" and, if it was validated, "validation".
        place: "epoch" or "step": the key that the records are numbered by.
        kept: numbers of the records whose weights were kept, which are marked.
        losses: names of the loss among validation metrics; that of training has the first.
    """
    if not records:
        raise ValueError("`records` must have at least one epoch or interval. Received: none")
    parts = [record.get(part, {}) for record in records for part in _PARTS]
    known = dict.fromkeys(
        name for part in parts for name, value in part.items() if isinstance(value, int | float)
    )
    if not metrics or not set(metrics) <= set(known):
        raise ValueError(
            f"`metrics` must be of {', '.join(known)}. Received: {', '.join(metrics) or 'none'}"
        )
    figure, axes = new_figure(_WIDTH, _HEIGHT * len(metrics) + _MARGIN)
    axes.remove()
    panels = figure.subplots(len(metrics), sharex=True, squeeze=False)[:, 0]
    for axes, name in zip(panels, metrics):
        _draw(axes, records, place, name, losses if name == losses[0] else (name,))
        for number in kept:
            label = "kept" if number == kept[0] else None
            axes.axvline(number, color="#2ca02c", linestyle=":", linewidth=2, zorder=0, label=label)
        axes.legend(loc="best", fontsize=8)
    panels[-1].set_xlabel(place)
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    return figure


def usual_metrics(
    records: Sequence[Mapping[str, Any]],
    monitor: str | None = None,
    losses: Sequence[str] = ("loss",),
) -> list[str]:
    """Returns the metrics to plot by default: those of the training, and the monitored one.

    A loss that is a sum is replaced by its parts; perplexity is left out, it repeats its loss. See
    `plot_curves` for `records` and `losses`; `monitor` is the metric that epochs were compared by.
    """
    names = [name for record in records[:1] for name in record["training"]]
    if any(name.endswith("_loss") for name in names):
        names.remove("loss")
    if monitor is not None and monitor not in (*names, *losses):
        names.append(monitor)
    return [name for name in names if name != "perplexity"]


def _draw(
    axes: Any, records: Sequence[Mapping[str, Any]], place: str, name: str, names: Sequence[str]
) -> None:
    """Draws a metric; of several names of it, the first that a part has."""
    for part, (color, style) in _PARTS.items():
        measured = {known for record in records for known in record.get(part, {})}
        own = next((one for one in names if one in measured), name)
        found = [(r[place], r[part][own]) for r in records if own in r.get(part, {})]
        if found:
            marker = "o" if len(found) < _FEW else ""
            label = part if own == name else f"{part} ({own.replace('_', ' ')})"
            axes.plot(*zip(*found), style, color=color, marker=marker, markersize=4, label=label)
    axes.set_ylabel(name.replace("_", " "))
    axes.grid(alpha=0.3)


_INCHES_PER_TOKEN = 0.16
_MOST_TOKENS = 120  # of a text along which an answer is drawn
_INCHES_PER_WORD = 0.28
# A longer side is many thousand pixels; the cells of a very long text are smaller instead.
_LONGEST_SIDE = 40.0


def plot_attention(
    queries: Sequence[str], keys: Sequence[str], scores: np.ndarray, title: str = ""
) -> "Figure":
    """Draws attention probabilities: a row for each query, a column for each key.

    The T `queries` are the tokens that attend, the S `keys` those that are attended to, and
    `scores` (T, S) has a distribution in each row.

    Source: Bahdanau et al. 2015, figure 3.
    """
    if np.shape(scores) != (len(queries), len(keys)):
        raise ValueError(
            f"`scores` must have the shape {(len(queries), len(keys))}, queries by keys. "
            f"Received: {np.shape(scores)}"
        )
    cell = min(_INCHES_PER_TOKEN, _LONGEST_SIDE / max(len(keys), len(queries), 1))
    width, height = (cell * len(side) for side in (keys, queries))
    size = 7.0 * cell / _INCHES_PER_TOKEN
    figure, axes = new_figure(max(4.0, width + 1.5), max(3.5, height + 1.2))
    image = axes.imshow(scores, cmap="viridis", vmin=0.0, aspect="auto", interpolation="nearest")
    queries, keys = readable(queries), readable(keys)
    axes.set_xticks(range(len(keys)), keys, rotation=90, **label_style(keys, size))
    axes.set_yticks(range(len(queries)), queries, **label_style(queries, size))
    axes.set_xlabel("attended to")
    axes.set_ylabel("attends")
    axes.set_title(title, fontsize=10)
    figure.colorbar(image, ax=axes, fraction=0.03, pad=0.01)
    return figure


def plot_alignment(
    source: Sequence[str], target: Sequence[str], weights: np.ndarray, title: str = ""
) -> "Figure":
    """Draws an alignment: a column for each source word, a row for each of the translation.

    The weights (T, S), each row a distribution, are shades of grey, from black for 0 to white for
    the largest one. Raises a ValueError if there is no target word.

    Source: Bahdanau et al. 2015, figure 3.
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
    size = min(9.0, 0.6 * cell * POINTS_PER_INCH)
    longest = [longest_inches(side, size) for side in (target, source)]
    width = max(cell * len(source) + longest[0] + 0.9, 0.07 * len(title) + 0.3)
    figure, axes = new_figure(width, cell * len(target) + longest[1] + (0.55 if title else 0.3))
    most = np.max(weights)
    image = axes.imshow(weights, cmap="gray", vmin=0.0, vmax=most, interpolation="nearest")
    axes.xaxis.tick_top()
    axes.set_xticks(range(len(source)), source, rotation=90, **label_style(source, size))
    axes.set_yticks(range(len(target)), target, **label_style(target, size))
    axes.tick_params(length=0)
    if title:
        figure.suptitle(title, fontsize=9, parse_math=False)
    bar = axes.inset_axes((1.0 + 0.1 / (cell * len(source)), 0.0, 0.12 / (cell * len(source)), 1.0))
    figure.colorbar(image, cax=bar, ticks=(0.0, most), format="%.2f")
    bar.tick_params(labelsize=7)
    return figure


def plot_span(
    tokens: Sequence[str],
    start: np.ndarray,
    end: np.ndarray,
    span: tuple[int, int] | None,
    title: str = "",
) -> "Figure":
    """Draws the probabilities that an answer starts and ends with each of the tokens of a text.

    Of a long text the part around the likeliest start is shown. `span` is first and last token of
    the answer, or None.
    """
    if not len(tokens) == len(start) == len(end):
        raise ValueError(
            "`start` and `end` must have a value for each token. Received: "
            f"{len(tokens)} tokens, {len(start)} and {len(end)} values"
        )
    middle = int(np.argmax(start)) if len(tokens) else 0
    first = max(0, min(middle - _MOST_TOKENS // 2, len(tokens) - _MOST_TOKENS))
    shown = slice(first, min(len(tokens), first + _MOST_TOKENS))
    places = np.arange(len(tokens))[shown]
    figure, axes = new_figure(max(6.0, _INCHES_PER_TOKEN * len(places)), 3.2)
    if span is not None:
        axes.axvspan(span[0] - 0.5, span[1] + 0.5, color="#d9ead3", label="answer")
    axes.bar(places - 0.2, np.asarray(start)[shown], 0.4, color="#1f77b4", label="start")
    axes.bar(places + 0.2, np.asarray(end)[shown], 0.4, color="#d62728", label="end")
    labels = readable(tokens[shown])
    axes.set_xticks(places, labels, rotation=90, **label_style(labels, 7))
    axes.set_xlim(first - 1, places[-1] + 1 if len(places) else 1)
    axes.set_ylim(0, 1)
    axes.set_ylabel("probability")
    (title,) = readable([title])
    axes.set_title(title, **label_style([title], 10))
    axes.legend(loc="upper right", fontsize=8)
    return figure
