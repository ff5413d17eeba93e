"""The state of a training between two steps: all that is needed for an exact resume.

A state is a folder `step-N` with every variable of model, optimizer, metrics and seeds, the
position in the data, and the metrics so far. It is written atomically, all of it is checked by
hash, and of several the newest undamaged one is used.
"""

import dataclasses
import hashlib
import json
import logging
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

from kbert.checkpoints.arrays.checkpoint_files import write_safetensors
from kbert.models.weights import encoder_arrays
from kbert.storage.files import atomic_directory, remove_leftovers, sha256_of, verify_sha256
from kbert.storage.json_files import read_json_object
from kbert.training.runs.run_directory import REPORT
from kbert.training.runs.stopped_runs import note_begun

logger = logging.getLogger(__name__)
_ARRAYS = "variables.safetensors"
_ABOUT = "state.json"
_METRICS = "metrics/"
_WEIGHTS = "weights"
_TOLD = ("step", "epoch", "batch", "data", "told", "order", "seconds")
_NAME = re.compile(r"step-(\d+)")


@dataclass(frozen=True)
class Position:
    """The progress of a training.

    Attributes:
        step, epoch, batch: Finished steps of all epochs; the running epoch, from 0; and how many of
            its batches are finished.
        data: The position in the data as numbers, where epoch and batch are not enough.
        told: The record of the callbacks so far, as JSON types.
        order: A hash of all that the order of the batches depends on; in another order `batch` and
            `data` are meaningless. Empty if unknown.
        seconds: Seconds that the run has taken so far, over all of its processes.
        sums: In a loaded state, the values of the metrics in the running epoch.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    data: dict[str, int] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    order: str = ""
    seconds: float = field(default=0.0, compare=False)
    sums: tuple[np.ndarray, ...] = field(default=(), compare=False)


def save_state(folder: Path, model: Any, position: Position, keep: int = 2) -> Path:
    """Writes the state of a compiled model in training, and returns its folder, one of `folder`.

    The newest `keep` states stay.

    Raises:
        FloatingPointError: A weight is NaN or infinite; nothing is written then.
        OSError: It cannot be written; the states before it are kept.
    """
    arrays = {name: np.asarray(v) for name, v in _variables(model).items()}
    for number, variable in enumerate(model.metrics_variables):
        arrays[f"{_METRICS}{number:05d}"] = np.asarray(variable)
    check_finite(arrays, position.step)
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"step-{position.step:09d}"
    with atomic_directory(target, overwrite=True) as partial:
        write_safetensors(partial / _ARRAYS, arrays, format="kbert")
        about = {name: getattr(position, name) for name in _TOLD}
        about["sha256"] = sha256_of(partial / _ARRAYS)
        about["checksum"] = _checksum(about)
        (partial / _ABOUT).write_text(json.dumps(about), encoding="utf-8")
    states = _states(folder)
    newer = states.index(target)  # newer ones were damaged, and are repeated
    for old in (*states[:newer], *states[newer + keep :]):
        shutil.rmtree(old)
    return target


def check_finite(variables: Mapping[str, Any], step: int) -> None:
    """Raises a FloatingPointError if a weight is NaN or infinite."""
    broken = next((name for name, v in variables.items() if not _is_finite(np.asarray(v))), None)
    if broken is not None:
        raise FloatingPointError(
            f"the weights must stay finite. Received: NaN or infinity in {broken} after step "
            f"{step}, which is not saved. Try a lower learning_rate"
        )


def load_state(folder: Path, model: Any) -> Position | None:
    """Loads the newest undamaged state of a folder into the same model, compiled in the same way.

    Damaged ones after it are removed, so no other process may use the folder. Returns the progress
    of the training, or None if no state is undamaged; if all are damaged, a warning is logged.

    Raises:
        ValueError: The state is of another model.
    """
    remove_leftovers(folder)
    damaged: list[Path] = []
    for state in _states(folder):
        try:
            about = _about(state)
        except (OSError, ValueError, KeyError) as error:
            logger.warning("%s is damaged and not used: %s", state, error)
            damaged.append(state)
            continue
        model.optimizer.build(model.trainable_variables)
        variables = _variables(model)
        arrays = load_file(state / _ARRAYS)
        # Returned separately: Keras creates the variables of metrics on the first batch.
        sums = tuple(arrays.pop(name) for name in sorted(arrays) if name.startswith(_METRICS))
        if set(arrays) != set(variables):
            raise ValueError(
                f"`{state}` must be of the same model. Received: "
                f"{sorted(set(arrays) ^ set(variables))[:5]} in only one of them"
            )
        for name, variable in variables.items():
            # Scalars are stored as (1,).
            if arrays[name].shape != (tuple(variable.shape) or (1,)):
                raise ValueError(
                    f"`{state}` must be of the same model. Received: {name} of shape "
                    f"{arrays[name].shape}, not {tuple(variable.shape)}"
                )
            variable.assign(arrays[name].reshape(variable.shape))
        for other in damaged:  # each would count among the states to keep
            shutil.rmtree(other, ignore_errors=True)
        # (The first states had no order, and no seconds.)
        return Position(**{name: about[name] for name in _TOLD if name in about}, sums=sums)
    if damaged:
        logger.warning("no whole state is left in %s: the training begins anew", folder)
    return None


def _about(state: Path) -> dict[str, Any]:
    """Reads the description of a state, after checking all of it by hash."""
    about: dict[str, Any] = json.loads((state / _ABOUT).read_text(encoding="utf-8"))
    if about.pop("checksum") != _checksum(about):
        raise ValueError(f"`{state / _ABOUT}` must have the checksum that it tells")
    verify_sha256(state / _ARRAYS, about["sha256"])
    return about


def _checksum(about: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()


def _is_finite(array: np.ndarray) -> bool:
    # Types that NumPy does not know by itself, such as bfloat16, are of the kind "V".
    if array.dtype.kind not in "fV":
        return True
    return bool(np.isfinite(array.astype("float32") if array.dtype.kind == "V" else array).all())


def _states(folder: Path) -> list[Path]:
    """Returns the folders of states, the newest first."""
    if not folder.is_dir():
        return []
    found = [entry for entry in folder.iterdir() if _NAME.fullmatch(entry.name)]
    return sorted(found, key=lambda entry: entry.name, reverse=True)


def _variables(model: Any) -> dict[str, Any]:
    """Returns all variables by a unique name, which is the same in another process.

    The first part of a Keras path, such as the optimizer's name, counts objects of the process.
    """
    groups = {"model": model.variables, "optimizer": model.optimizer.variables}
    return {
        f"{group}/{number:05d}/{variable.path.partition('/')[2]}": variable
        for group, variables in groups.items()
        for number, variable in enumerate(variables)
    }


def sha256_of_arrays(*arrays: np.ndarray) -> str:
    """Returns a hash of the arrays of examples."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def initial_weights(kept: Path | None, **models: Any) -> dict[str, Any]:
    """Returns the entry of a run's report on the weights that it begins with, perhaps none.

    It has a hash for each of the options named by `models` that has a model, not None. Where a run
    is resumed, `kept` is its folder, and they must be those of its report, if it has any: a state
    has no features of a frozen model, and no subwords.

    Raises:
        ValueError: Weights have changed; the message names the option.
    """
    hashes = {
        option: sha256_of_arrays(*encoder_arrays(model).values())
        for option, model in models.items()
        if model is not None
    }
    before: dict[str, str] = {}
    if kept is not None and (kept / REPORT).is_file():
        before = read_json_object(kept / REPORT).get(_WEIGHTS, {})
    for option, found in hashes.items():
        if before.get(option, found) != found:
            raise ValueError(
                f"`{option}` must have the weights that the run in {kept} began with, even with "
                "allow_config_change. Received: others. Put the former files back, or set "
                "overwrite (--overwrite) to start anew"
            )
    return {_WEIGHTS: hashes} if hashes else {}


def sha256_of_columns(examples: Any) -> str:
    """Returns a hash of the columns of examples of any task, a dataclass."""
    names = (field.name for field in dataclasses.fields(examples))
    values = {name: getattr(examples, name) for name in names if name != "source"}
    return hashlib.sha256(json.dumps(values, default=_plain).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Converts a value without a JSON type to one that has it."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else vars(value)


def order_of(*parts: Any) -> str:
    """Returns a hash of all that the order of a run's batches depends on.

    `parts` are hashes of the examples, and the options of batching and shuffling: JSON types, or
    dataclasses of these.
    """
    return hashlib.sha256(json.dumps(parts, default=dataclasses.asdict).encode()).hexdigest()


def at_epoch_begin(position: Position) -> Position:
    """Returns the beginning of the epoch: in another order its batches do not count."""
    return replace(position, batch=0)


def position_in(
    folder: Path,
    model: Any,
    order: str,
    begun_anew: Callable[[Position], Position] = at_epoch_begin,
) -> Position:
    """Loads the newest state of a folder into a model, and returns the position to resume from.

    Without a state it is the beginning. A position in another order becomes `begun_anew` of it. The
    order in the state itself decides, not the other files of the folder: these may have been
    overwritten by a process that saved no state.

    Raises:
        ValueError: The state is of another model.
    """
    note_begun()
    position = load_state(folder, model) or Position()
    if position.order not in ("", order):
        logger.warning(
            "the batches come in another order than those of %s: what was begun begins anew", folder
        )
        position = begun_anew(position)
    return replace(position, order=order)
