"""What a training brought, interval by interval."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kbert.plots.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PARTS = {"training": ("#1f77b4", "--"), "validation": ("#d62728", "-")}
_WIDTH, _HEIGHT, _MARGIN = 6.0, 2.0, 0.3  # inches; height of one metric
_FEW = 8  # points, which are marked: one alone is no line


def plot_curves(
    records: Sequence[Mapping[str, Any]], metrics: Sequence[str], place: str
) -> "Figure":
    """Draws metrics of training and validation, each over the steps or epochs.

    Args:
        records: `epochs` or `intervals` of a run's metrics.json: each has its place, and under
            "training", and "validation" where there was one, numbers by their names.
        metrics: names of those to draw, one above the other.
        place: "epoch" or "step": what the records are numbered by.

    Raises:
        ValueError: there is no record, or none has such a metric.
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
        _draw(axes, records, place, name)
    panels[-1].set_xlabel(place)
    panels[-1].xaxis.get_major_locator().set_params(integer=True)
    return figure


def usual_metrics(records: Sequence[Mapping[str, Any]], monitor: str | None = None) -> list[str]:
    """The metrics that people look at first: those of the training, and what it was judged by.

    Of a loss that is a sum the parts are taken, and perplexity says what its loss does.

    Args:
        records: as of `plot_curves`.
        monitor: the metric that epochs were compared by.
    """
    names = [name for record in records[:1] for name in record["training"]]
    if any(name.endswith("_loss") for name in names):
        names.remove("loss")
    names += [monitor] if monitor is not None and monitor not in names else []
    return [name for name in names if name != "perplexity"]


def _draw(axes: Any, records: Sequence[Mapping[str, Any]], place: str, name: str) -> None:
    for part, (color, style) in _PARTS.items():
        found = [(r[place], r[part][name]) for r in records if name in r.get(part, {})]
        if found:
            marker = "o" if len(found) < _FEW else ""
            axes.plot(*zip(*found), style, color=color, marker=marker, markersize=4, label=part)
    axes.set_ylabel(name.replace("_", " "))
    axes.grid(alpha=0.3)
    axes.legend(loc="best", fontsize=8)
