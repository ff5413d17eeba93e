"""Metrics over an epoch of which an earlier process did a part."""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np


class RunningMetrics(keras.callbacks.Callback):
    """Adds what the metrics had of an epoch when a state was saved, which Keras would forget.

    All that metrics hold are sums over batches. It must be the first callback.

    Args:
        sums: From `kbert.training.train_state.Position`.
    """

    def __init__(self, sums: Sequence[np.ndarray]) -> None:
        super().__init__()
        self._sums = list(sums)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the sums, once: before the first batch not all metrics have their variables."""
        for variable, before in zip(self.model.metrics_variables, self._sums):
            variable.assign_add(before.reshape(variable.shape))
        self._sums = []
