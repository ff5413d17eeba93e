"""The monitored metric of a run: which of two results is the better one."""

from collections.abc import Mapping
from typing import Any

# These are the better the smaller they are.
FALLING = ("cross_entropy", "mse", "loss", "perplexity")
# Under which names a task measures its loss; it decides where the metric does not.
_LOSSES = ("loss", "cross_entropy", "mse")


def is_better(metric: str, found: Mapping[str, Any], best: Mapping[str, Any] | None) -> bool:
    """Tells whether metrics are better than the best so far; of equal ones, by their loss.

    Args:
        metric: The name of the metric that they are compared by.
        found: The new metrics.
        best: The best so far, or None.

    Returns:
        False where both are equal, or where the task measures no loss: the earlier one stays.
    """
    if best is None:
        return True
    if found[metric] != best[metric]:
        return bool((found[metric] < best[metric]) == (metric in FALLING))
    loss = next((name for name in _LOSSES if name in found and name in best), None)
    return loss is not None and bool(found[loss] < best[loss])


def numbers(metrics: dict[str, Any]) -> dict[str, float]:
    """Returns the metrics that are single numbers.

    Args:
        metrics: From `measure`.
    """
    return {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
