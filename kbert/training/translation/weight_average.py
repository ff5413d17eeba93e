"""Averaging of the last epochs' weights, as in Vaswani et al. 2017 (section 6.1)."""

import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import load_file

from kbert.checkpoints.arrays.safetensors_files import write_safetensors
from kbert.models.encoder_arrays import named_weights
from kbert.storage.atomic_directory import atomic_directory

_NAME = re.compile(r"epoch-(\d+)")
_WEIGHTS = "weights.safetensors"


class WeightsKeeper(keras.callbacks.Callback):
    """Keeps the weights of the last epochs.

    Args:
        folder: folder of the weights; created if needed. One folder per epoch, written atomically.
        last: number of epochs to keep, at least 1.

    Raises:
        ValueError: `last` is below 1.
    """

    def __init__(self, folder: Path, last: int) -> None:
        super().__init__()
        if last < 1:
            raise ValueError(f"`last` must be at least 1. Received: last={last}")
        self._folder = folder
        self._last = last

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Writes the weights, and removes those no longer needed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        arrays = {
            name: np.asarray(variable)
            for name, variable in named_weights(self.model).items()
            if variable.trainable
        }
        # The epoch may exist: a resumed run repeats what came after its last state.
        target = self._folder / f"epoch-{epoch + 1:05d}"
        with atomic_directory(target, overwrite=True) as partial:
            write_safetensors(partial / _WEIGHTS, arrays, format="kbert")
        for old in kept_weights(self._folder)[: -self._last]:
            shutil.rmtree(old)


def kept_weights(folder: Path) -> list[Path]:
    """Returns the folders of a `WeightsKeeper`, the oldest epoch first."""
    entries = folder.iterdir() if folder.is_dir() else ()
    return sorted(entry for entry in entries if _NAME.fullmatch(entry.name))


def remove_weights_after(folder: Path, epoch: int) -> None:
    """Removes the weights of epochs after the last state, left by a killed process."""
    for kept in kept_weights(folder):
        if int(kept.name.rpartition("-")[2]) > epoch:
            shutil.rmtree(kept)


def average_weights(model: Any, epochs: Sequence[Path]) -> None:
    """Assigns the mean of several epochs' weights to a model; frozen weights stay.

    Raises:
        ValueError: there are none, or they are of another model.
    """
    if not epochs:
        raise ValueError("`epochs` must be at least one. Received: none")
    variables = {n: v for n, v in named_weights(model).items() if v.trainable}
    sums = {name: np.zeros(variable.shape, "float64") for name, variable in variables.items()}
    for epoch in epochs:
        arrays = load_file(epoch / _WEIGHTS)
        if {n: a.shape for n, a in arrays.items()} != {n: a.shape for n, a in sums.items()}:
            raise ValueError(f"`epochs` must be of this model. Received: {epoch}, of another")
        for name, array in arrays.items():
            sums[name] += array
    for name, variable in variables.items():
        variable.assign((sums[name] / len(epochs)).astype(variable.dtype))
