"""Metrics and step count of a resumed epoch."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np


class RunningMetrics(keras.callbacks.Callback):
    """Restores the metrics of a resumed epoch from a saved state; Keras would reset them.

    Metrics consist of sums over batches. The saved sums are added to zeros before the first batch,
    where the metrics have their variables by then; else after the first batch, to its sums, which
    is equivalent. (A call of several steps always has them: see
    `kbert.pipelines.replication.replication`.) It must be the first callback.

    Args:
        sums: From `kbert.training.resume.train_state.Position`.
    """

    def __init__(self, sums: Sequence[np.ndarray]) -> None:
        super().__init__()
        self._sums = list(sums)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the sums before the first batch, if all metrics have their variables."""
        if len(self.model.metrics_variables) == len(self._sums):
            self._add()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the sums after the first batch, if they were not added before."""
        self._add()

    def _add(self) -> None:
        """Adds the sums once."""
        for variable, before in zip(self.model.metrics_variables, self._sums):
            variable.assign_add(before.reshape(variable.shape))
        self._sums = []


def steps_done(batch: int, params: Mapping[str, Any] | None) -> int:
    """Returns how many steps of this call of `fit` are done in the running epoch.

    Keras counts whole calls of several steps, of which the last one may be short.

    Args:
        batch: The argument of `on_train_batch_end`.
        params: The callback's `params`.
    """
    return min(batch + 1, (params or {}).get("steps") or batch + 1)
