"""The state of a training between two steps: all that is needed to go on as if nothing had been.

A state is a folder `step-N` with every variable of model, optimizer and metrics and the position in
the data. It appears whole or not at all, its files are checked by hash, and of several the newest
whole one is used.
"""

import json
import logging
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import keras
import numpy as np
from safetensors.numpy import load_file

from kbert.checkpoints.safetensors_files import write_safetensors
from kbert.storage.atomic_directory import atomic_directory
from kbert.storage.checksums import sha256_of, verify_sha256

logger = logging.getLogger(__name__)
_ARRAYS = "variables.safetensors"
_ABOUT = "state.json"
_NAME = re.compile(r"step-(\d+)")


@dataclass(frozen=True)
class Position:
    """How far a training has come.

    Attributes:
        step: Steps of all epochs that are done.
        epoch: The epoch that goes on, from 0.
        batch: Its batches that are done.
        data: Numbers that say where the data go on, where epoch and batch do not.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    data: dict[str, int] = field(default_factory=dict)


def save_state(folder: Path, model: Any, position: Position, keep: int = 2) -> Path:
    """Writes the state of a training.

    Args:
        folder: Where states lie; made if need be.
        model: A compiled Keras model that has been trained.
        position: How far it has come.
        keep: How many states stay, the newest ones.

    Returns:
        The folder of the state.
    """
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"step-{position.step:09d}"
    with atomic_directory(target, replace=True) as partial:
        arrays = {name: np.asarray(v) for name, v in _variables(model).items()}
        write_safetensors(partial / _ARRAYS, arrays, format="kbert")
        about = {**asdict(position), "sha256": sha256_of(partial / _ARRAYS)}
        (partial / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
    for old in _states(folder)[keep:]:
        shutil.rmtree(old)
    return target


def load_state(folder: Path, model: Any) -> Position | None:
    """Gives a model the newest whole state.

    Args:
        folder: Where states lie.
        model: The same model, compiled alike.

    Returns:
        How far the training had come, or None where there is no state.

    Raises:
        ValueError: The state is of another model.
    """
    for state in _states(folder):
        try:
            about = json.loads((state / _ABOUT).read_text(encoding="utf-8"))
            verify_sha256(state / _ARRAYS, about["sha256"])
        except (OSError, ValueError, KeyError) as error:
            logger.warning("%s is damaged and not used: %s", state, error)
            continue
        model.optimizer.build(model.trainable_variables)
        variables = _variables(model)
        arrays = load_file(state / _ARRAYS)
        if set(arrays) != set(variables):
            raise ValueError(
                f"`{state}` must be of the same model. Received: "
                f"{sorted(set(arrays) ^ set(variables))[:5]} in only one of them"
            )
        for name, variable in variables.items():
            variable.assign(arrays[name].reshape(variable.shape))  # scalars are stored as (1,)
        return Position(about["step"], about["epoch"], about["batch"], about.get("data", {}))
    return None


class StateSaver(keras.callbacks.Callback):
    """Saves the state of a training now and then, and at its end.

    Args:
        folder: Where states lie.
        start: Where the training goes on.
        seconds: Time between two states.
    """

    def __init__(self, folder: Path, start: Position | None = None, seconds: float = 300) -> None:
        super().__init__()
        self._folder = folder
        self._position = start or Position()
        # Of the epoch that goes on, the batches that an earlier process did.
        self._before = self._position.batch
        self._seconds = seconds
        self._last = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the step, and saves if it is time."""
        at = self._position
        if batch + 1 == (self.params or {}).get("steps"):
            self._position = Position(at.step + 1, at.epoch + 1, 0)
        else:
            self._position = Position(at.step + 1, at.epoch, self._before + batch + 1)
        if time.monotonic() - self._last >= self._seconds:
            self._save()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begins the next epoch, and saves."""
        self._position = Position(self._position.step, epoch + 1, 0)
        self._before = 0
        self._save()

    def _save(self) -> None:
        save_state(self._folder, self.model, self._position)
        self._last = time.monotonic()


def fit_from(
    model: Any,
    position: Position,
    epochs: int,
    dataset: Callable[[int, int], Any],
    **kwargs: Any,
) -> None:
    """Trains a model from a position on.

    Args:
        model: A compiled model.
        position: From `load_state`, or the beginning.
        epochs: Epochs in all.
        dataset: Gives the batches from an epoch and a batch of it on, see
            `kbert.data.pipeline.batched_dataset`.
        **kwargs: Further arguments of the model's `fit`.
    """
    begin = position.epoch
    if position.batch and begin < epochs:
        # By itself: Keras would take the rest of an epoch for the length of all.
        rest = dataset(begin, position.batch)
        model.fit(rest, initial_epoch=begin, epochs=begin + 1, **kwargs)
        begin += 1
        if model.stop_training:  # Keras' next `fit` would forget it
            return
    if begin < epochs:
        model.fit(dataset(begin, 0), initial_epoch=begin, epochs=epochs, **kwargs)


def _states(folder: Path) -> list[Path]:
    """The folders of states, the newest first."""
    if not folder.is_dir():
        return []
    found = [entry for entry in folder.iterdir() if _NAME.fullmatch(entry.name)]
    return sorted(found, key=lambda entry: entry.name, reverse=True)


def _variables(model: Any) -> dict[str, Any]:
    """All variables by a name that is theirs alone, and the same in another process.

    What comes first in a path, the name of the optimizer for example, counts the objects made.
    """
    groups = {
        "model": model.variables,
        "optimizer": model.optimizer.variables,
    }
    return {
        f"{group}/{number:05d}/{variable.path.partition('/')[2]}": variable
        for group, variables in groups.items()
        for number, variable in enumerate(variables)
    }
