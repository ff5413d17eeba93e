"""Whether what a stopped run left is of the run that is to go on with it."""

import dataclasses
import hashlib
import json
import logging
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kbert.training.config.config_file import read_config_file
from kbert.training.config.configuration import Configuration
from kbert.training.distributed.earlier_attempt import is_begun, note_begun
from kbert.training.distributed.stop_signals import GO_ON
from kbert.training.resume.train_state import Position, load_state
from kbert.training.runs.run_directory import CONFIG, METRICS, REPORT, stopped_run
from kbert.training.runs.run_log import RunLog

logger = logging.getLogger(__name__)
# They say how a run is started and what it leaves on its way, not what it does.
_OF_THE_START = ("output", "overwrite", "resume", "allow_config_change", "keep_states")

# Hashes in a run's report.
_OF_WHAT = {
    "data_sha256": "to learn from",
    "examples_sha256": "to learn from",
    "validation_sha256": "to be measured on",
    "test_sha256": "to be tested on",
}

# How the names of hashes end in a report.
_HASH = "_sha256"


def goes_on(config: Any) -> bool:
    """Tells whether a configuration goes on with what a stopped run left.

    An attempt that a launcher made after another one does in any case: what is there is its own.

    Args:
        config: A configuration with `resume` and `overwrite`.
    """
    return is_begun() or _same_command_goes_on(config)


def way_on(config: Any) -> str:
    """How a run of a configuration goes on after a stop, as a sentence without its stop.

    Args:
        config: A configuration with `output`, `resume` and `overwrite`.
    """
    if _same_command_goes_on(config):
        return GO_ON
    if not config.overwrite:
        return "Set resume to go on from the last state"
    away = f"move {config.output} away and " if Path(config.output or "").is_dir() else ""
    return f"To go on from the last state, {away}leave out overwrite, which begins anew"


def is_measured(folder: Path, config: Configuration, report: Mapping[str, Any]) -> bool:
    """Tells whether a stopped run had come to its end, but for its name.

    Metrics of another configuration or of other data are removed: such a run goes on.

    Args:
        folder: What the run left.
        config: The configuration that it is to go on with.
        report: Its report with the hashes of its data, as the run writes it.
    """
    if not (folder / METRICS).is_file():
        return False
    changed = bool(changed_keys(read_config_file(folder / CONFIG), config))
    before = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    if changed or any(before.get(key) != report[key] for key in report if key.endswith(_HASH)):
        (folder / METRICS).unlink()
        return False
    return True


def kept_run(config: Any, log: RunLog) -> Path | None:
    """Returns the folder that a stopped run left to go on with, or None.

    Args:
        config: The configuration of the run that is to go on.
        log: Where a line about it goes.

    Raises:
        ValueError: As `check_same_run`.
    """
    kept = stopped_run(config.output or "") if goes_on(config) else None
    if kept is not None:
        check_same_run(kept, config)
        log.line(f"goes on with what is in {kept}")
    return kept


def check_same_run(folder: Path, config: Configuration) -> list[str]:
    """Checks that a stopped run had the same configuration.

    Args:
        folder: What the run left.
        config: The configuration that it is to go on with.

    Returns:
        The keys that have changed, where `allow_config_change` says that they may; a warning tells
        them.

    Raises:
        ValueError: They may not (the message names them), or the file of the run is damaged.
    """
    if not (folder / CONFIG).is_file():
        return []  # it was stopped before it wrote anything
    before, now = read_config_file(folder / CONFIG), config.to_dict()
    keys = changed_keys(before, config)
    told = ", ".join(f"{key}={now[key]!r} (it had {before.get(key)!r})" for key in keys)
    if keys and not now["allow_config_change"]:
        raise ValueError(
            f"`resume` must go on with the same configuration as in {folder / CONFIG}. Received: "
            f"{told}. Set allow_config_change (--allow-config-change) to go on all the same, or "
            "overwrite (--overwrite) to start anew"
        )
    if keys:
        logger.warning("goes on with another configuration: %s", told)
    return keys


def changed_keys(before: Mapping[str, Any], config: Configuration) -> list[str]:
    """The keys in which a configuration is another one than before.

    Args:
        before: Keys and values as a run wrote them.
        config: The configuration.
    """
    now = config.to_dict()
    # An earlier version of this package may not have had the key.
    before = {field.name: field.default for field in dataclasses.fields(config)} | dict(before)
    return [key for key in now if key not in _OF_THE_START and before.get(key) != now[key]]


def check_unchanged(kept: Path, config: Configuration, keys: Collection[str], of: str) -> None:
    """Checks what no configuration may change that goes on with a stopped run.

    Args:
        kept: What the run left.
        config: The configuration that it is to go on with.
        keys: Those that must be as before.
        of: What the weights belong to, for the message.

    Raises:
        ValueError: One has changed; the message names it.
    """
    if not (kept / CONFIG).is_file():
        return
    changed = set(changed_keys(read_config_file(kept / CONFIG), config)) & set(keys)
    if changed:
        raise ValueError(
            f"{', '.join(f'`{key}`' for key in sorted(changed))} must be as the run began with, "
            f"even with allow_config_change: its weights are of {of}. Set overwrite "
            "(--overwrite) to start anew"
        )


def changed_data(folder: Path, hashes: Mapping[str, str], may_change: bool = False) -> list[str]:
    """Checks that a stopped run had the same data.

    Args:
        folder: What the run left.
        hashes: Of the data that it is to go on with, under their names in its report.
        may_change: Whether others are allowed; then a warning tells of them.

    Returns:
        The names of those that are others; none of which nothing is known.

    Raises:
        ValueError: It had others, or its report is damaged.
    """
    if not (folder / REPORT).is_file():
        return []
    try:
        report: dict[str, Any] = json.loads((folder / REPORT).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / REPORT} must be JSON. Received: {error}") from error
    changed = [name for name in hashes if report.get(name, hashes[name]) != hashes[name]]
    if not changed:
        return []
    told = " and ".join(dict.fromkeys(_OF_WHAT.get(name, name) for name in changed))
    if not may_change:
        raise ValueError(
            f"`resume` must go on with the same data as the run in {folder}. Received: "
            f"others {told}; the files have changed since. Set allow_config_change "
            "(--allow-config-change) to go on all the same, or overwrite (--overwrite) to start "
            "anew"
        )
    logger.warning("goes on with other data than before %s", told)
    return changed


def sha256_of_arrays(*arrays: np.ndarray) -> str:
    """Returns a hash of examples, for `changed_data`.

    Args:
        *arrays: What they consist of.
    """
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def sha256_of_columns(examples: Any) -> str:
    """Returns a hash of what is in the columns of examples, for `changed_data`.

    Args:
        examples: Examples of any form.
    """
    values = {
        field.name: getattr(examples, field.name)
        for field in dataclasses.fields(examples)
        if field.name != "source"
    }
    return hashlib.sha256(json.dumps(values, default=_plain).encode()).hexdigest()


def order_of(*parts: Any) -> str:
    """Returns a hash of all that the order of a run's batches depends on.

    Args:
        *parts: Hashes of the examples, and the options that cut and shuffle them: what JSON can
            hold, or dataclasses of it.
    """
    return hashlib.sha256(json.dumps(parts, default=dataclasses.asdict).encode()).hexdigest()


def at_epoch_begin(position: Position) -> Position:
    """Where to go on in another order: what was done of an epoch says nothing of it.

    Args:
        position: Where the training was.
    """
    return dataclasses.replace(position, batch=0)


def position_in(
    folder: Path,
    model: Any,
    order: str,
    begun_anew: Callable[[Position], Position] = at_epoch_begin,
) -> Position:
    """Gives a model the newest state, and returns where the training goes on.

    What the state itself knows of the order decides, not what the folder says of the run: that may
    have been written anew by a process that came to no state of its own.

    Args:
        folder: Where states lie.
        model: The compiled model.
        order: From `order_of`.
        begun_anew: Where to go on in another order.

    Returns:
        The beginning where there is no state.

    Raises:
        ValueError: As `kbert.training.resume.train_state.load_state`.
    """
    note_begun()
    position = load_state(folder, model) or Position()
    if position.order not in ("", order):
        logger.warning(
            "the batches come in another order than those of %s: what was begun begins anew",
            folder,
        )
        position = begun_anew(position)
    return dataclasses.replace(position, order=order)


def _same_command_goes_on(config: Any) -> bool:
    return bool(config.resume and not config.overwrite)


def _plain(value: Any) -> Any:
    """What JSON has no form for, as one that it has."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else vars(value)
