"""Means over the tokens of an epoch, independent of its batches."""

from typing import Any

import keras
from keras import ops


class StreamingMean(keras.metrics.Metric):
    """The mean of one number per token over the tokens that count in all batches so far.

    An epoch has more tokens than float32 can count one by one (2^24), so each sum is kept in two
    variables: what the first rounds off is in the second (Kahan 1965).

    Args:
        name: of the metric.
    """

    def __init__(self, name: str | None = None, **kwargs: Any) -> None:
        super().__init__(name=name, **kwargs)
        names = ("total", "total_rest", "counted", "counted_rest")
        self._sums = [self.add_variable((), "zeros", dtype="float32", name=name) for name in names]

    def add(self, values: Any, counts: Any, sample_weight: Any = None) -> None:
        """Adds a batch.

        Args:
            values: float or bool (B, T), one per token.
            counts: float or bool (B, T), 1 where a token counts, else 0.
            sample_weight: a weight per sequence (B,), or None.
        """
        values, counts = ops.cast(values, "float32"), ops.cast(counts, "float32")
        if sample_weight is not None:
            counts = counts * ops.reshape(ops.cast(sample_weight, "float32"), (-1, 1))
        total, total_rest, counted, counted_rest = self._sums
        _add_to_pair(total, total_rest, ops.sum(values * counts))
        _add_to_pair(counted, counted_rest, ops.sum(counts))

    def result(self) -> Any:
        """Returns the mean, 0 before any token counted."""
        total, total_rest, counted, counted_rest = self._sums
        return (total + total_rest) / ops.maximum(counted + counted_rest, 1e-9)


def _add_to_pair(sum: Any, rest: Any, added: Any) -> None:
    added = added + rest
    new = sum + added
    rest.assign(added - (new - sum))
    sum.assign(new)
