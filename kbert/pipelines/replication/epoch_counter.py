"""Tells datasets which epoch begins, so that an epoch has the same batches whoever trains it."""

from typing import Any

import keras


class EpochTeller(keras.callbacks.Callback):
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


def told_epochs(dataset: Any, callbacks: Any) -> Any:
    """Callbacks for `fit` that tell a dataset its epochs, if it asks for them.

    Args:
        dataset: what `fit` trains on.
        callbacks: callbacks as `fit` takes them, or None.
    """
    epochs = getattr(dataset, "epochs", None)
    if epochs is None or isinstance(callbacks, keras.callbacks.CallbackList):
        return callbacks
    given = callbacks if isinstance(callbacks, list | tuple) else [callbacks]
    return [EpochTeller(epochs), *(one for one in given if one is not None)]
