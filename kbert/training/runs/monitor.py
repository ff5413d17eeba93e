"""The monitored metric of a run: which of two results is the better one."""

from collections.abc import Mapping
from typing import Any

from kbert.tasks.registry import finetuned_tasks

# Metrics for which smaller is better, besides those that tasks name.
FALLING = ("loss", "perplexity")
# Names of tasks' losses; the loss breaks ties of the metric.
_LOSSES = ("loss", "cross_entropy", "mse")


def is_better(metric: str, found: Mapping[str, Any], best: Mapping[str, Any] | None) -> bool:
    """Returns whether metrics are better than the best so far; the loss breaks ties.

    Args:
        metric: The name of the metric to compare.
        found: The new metrics.
        best: The best so far, or None.

    Returns:
        False for a tie of metric and loss, or of the metric without a loss: the earlier one stays.
    """
    if best is None:
        return True
    if found[metric] != best[metric]:
        return bool((found[metric] < best[metric]) == _falls(metric))
    loss = next((name for name in _LOSSES if name in found and name in best), None)
    return loss is not None and bool(found[loss] < best[loss])


def _falls(metric: str) -> bool:
    return metric in FALLING or any(metric in task.falling for task in finetuned_tasks())


def numbers(metrics: dict[str, Any]) -> dict[str, float]:
    """Returns the metrics that are single numbers.

    Args:
        metrics: Name -> value, of any type.
    """
    return {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
