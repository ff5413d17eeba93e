"""The number of the current epoch, which decides how a dataset shuffles."""

from itertools import count
from typing import Any

import keras
import tensorflow as tf


class Epochs:
    """Numbers the passes over a dataset.

    They are counted, unless the number is set. Keras makes iterators that it never reads; a count
    is right only as long as these do not start, and it restarts in a process that resumes.

    Args:
        first: number of the first pass.

    Attributes:
        told: the number of the next pass, or None to count.
    """

    def __init__(self, first: int = 0) -> None:
        self._count = count(first)
        self.told: int | None = None

    def begin(self) -> int:
        """Returns the number of the pass that starts now."""
        return next(self._count) if self.told is None else self.told


def unsharded(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Turns off tf.distribute's auto-sharding of a dataset that is one worker's shard already.

    Args:
        dataset: the shard of one worker.
    """
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)


class EpochCounter(keras.callbacks.Callback):
    """Sets the epoch number of a dataset, so that an epoch has the same batches in every process.

    Args:
        epochs: the dataset's `kbert.data.batches.epochs.Epochs`.
    """

    def __init__(self, epochs: Any) -> None:
        super().__init__()
        self._epochs = epochs

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Sets the epoch number, from 0."""
        self._epochs.told = epoch

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Makes the dataset count its passes again."""
        self._epochs.told = None


def with_epoch_counter(dataset: Any, callbacks: Any) -> Any:
    """Returns the callbacks, after an `EpochCounter` where the dataset has `epochs`.

    Args:
        dataset: the training data of `fit`.
        callbacks: the callbacks given to `fit`: one, several, or None.
    """
    epochs = getattr(dataset, "epochs", None)
    if epochs is None or isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    given = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    return [EpochCounter(epochs), *(one for one in given if one is not None)]
