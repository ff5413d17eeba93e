"""Training curves: metrics over epochs or steps."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbert.plots.figures import new_figure

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
    """Draws metrics of training and validation, each over the steps or epochs.

    The losses of training and validation share a panel, even under different names.

    Args:
        records: `epochs` or `intervals` of a run's metrics.json: each has its number under `place`,
            and {name: value} under "training" and, if it was validated, "validation".
        metrics: names of the metrics to draw, one above the other.
        place: "epoch" or "step": the key that the records are numbered by.
        kept: numbers of the records whose weights were kept, which are marked.
        losses: names of the loss among validation metrics; that of training has the first.

    Raises:
        ValueError: there is no record, or no record has such a metric.
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

    A loss that is a sum is replaced by its parts; perplexity is left out, it repeats its loss.

    Args:
        records: `epochs` or `intervals` of a run's metrics.json, see `plot_curves`.
        monitor: the metric that epochs were compared by.
        losses: names of the loss, see `plot_curves`.
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
