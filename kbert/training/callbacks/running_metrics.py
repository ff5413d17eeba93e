"""Metrics and steps of an epoch that an earlier process began."""

from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np


class RunningMetrics(keras.callbacks.Callback):
    """Adds what the metrics had of an epoch when a state was saved, which Keras would forget.

    All that metrics hold are sums over batches. They are added to nothing, before the first batch,
    where the metrics have their variables by then; else to those of the first batch, which is the
    same. (A call of several steps always has them: see
    `kbert.pipelines.replication.replicated_model`.) It must be the first callback.

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
        """Adds the sums behind the first batch, if they are not there."""
        self._add()

    def _add(self) -> None:
        """Once."""
        for variable, before in zip(self.model.metrics_variables, self._sums):
            variable.assign_add(before.reshape(variable.shape))
        self._sums = []


def steps_done(batch: int, params: Mapping[str, Any] | None) -> int:
    """How many steps of this call of `fit` are done in the epoch that goes on.

    Keras counts whole calls of several steps, of which the last one may be short.

    Args:
        batch: What `on_train_batch_end` got.
        params: The callback's parameters.
    """
    return min(batch + 1, (params or {}).get("steps") or batch + 1)
