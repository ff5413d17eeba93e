"""The number of the current epoch, which decides how a dataset shuffles."""

from itertools import count
from typing import Any

import keras
import tensorflow as tf


class Epochs:
    """Numbers the passes over a dataset.

    They are counted, unless somebody tells the number. Keras makes iterators that it never reads; a
    count holds only as long as these do not start, and begins anew in a process that goes on.

    Args:
        first: number of the first pass.

    Attributes:
        told: the number of the pass that begins next, or None to count.
    """

    def __init__(self, first: int = 0) -> None:
        self._count = count(first)
        self.told: int | None = None

    def begin(self) -> int:
        """The number of the pass that begins now."""
        return next(self._count) if self.told is None else self.told


def unsharded(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Keeps tf.distribute from dividing a dataset among workers, which have their own shares of it.

    Args:
        dataset: of one worker.
    """
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return dataset.with_options(options)


class EpochCounter(keras.callbacks.Callback):
    """Tells a dataset the number of each epoch.

    Args:
        epochs: the dataset's `kbert.data.batches.epochs.Epochs`.
    """

    def __init__(self, epochs: Any) -> None:
        super().__init__()
        self._epochs = epochs

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Tells the number, from 0."""
        self._epochs.told = epoch

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        """Lets the dataset count again."""
        self._epochs.told = None


def with_epoch_counter(dataset: Any, callbacks: Any) -> Any:
    """Callbacks for `fit` that tell a dataset its epochs, if it asks for them.

    Args:
        dataset: what `fit` trains on.
        callbacks: callbacks as `fit` takes them, or None.
    """
    epochs = getattr(dataset, "epochs", None)
    if epochs is None or isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    given = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    return [EpochCounter(epochs), *(one for one in given if one is not None)]
