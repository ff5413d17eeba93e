"""Decides whether a run resumes a stopped one, and checks that both match."""

import dataclasses
import json
import logging
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from kbert.options.configuration import Configuration
from kbert.options.kinds import read_config_file
from kbert.training.resume.stop_signals import GO_ON
from kbert.training.runs.run_directory import CONFIG, METRICS, REPORT, stopped_run
from kbert.training.runs.run_log import RunLog

logger = logging.getLogger(__name__)
# Options of starting a run and of the files that it leaves, without effect on its results.
_OF_THE_START = ("output", "overwrite", "resume", "allow_config_change", "keep_states")

# Hashes in a run's report -> their data in words.
_OF_WHAT = {
    "data_sha256": "to learn from",
    "examples_sha256": "to learn from",
    "validation_sha256": "to be measured on",
    "test_sha256": "to be tested on",
}

# Suffix of the keys of hashes in a report.
_HASH = "_sha256"
# A file that worker 0 creates when its run has begun; and whether an earlier attempt did.
_NOTE, _BEGUN = "KBERT_LAUNCH_NOTE", "KBERT_LAUNCH_BEGUN"


def goes_on(config: Any) -> bool:
    """Returns whether a configuration resumes a stopped run.

    A later attempt of a launcher always does: the run is its own.
    """
    return is_begun() or _same_command_goes_on(config)


def way_on(config: Any) -> str:
    """Returns how to resume a run after a stop, as a sentence without its full stop."""
    if _same_command_goes_on(config):
        return GO_ON
    if not config.overwrite:
        return "Set resume to go on from the last state"
    away = f"move {config.output} away and " if Path(config.output or "").is_dir() else ""
    return f"To go on from the last state, {away}leave out overwrite, which begins anew"


def is_measured(folder: Path, config: Configuration, report: Mapping[str, Any]) -> bool:
    """Returns whether a stopped run was complete except for renaming its folder.

    Metrics of another configuration or of other data are removed: such a run is resumed.
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
    """Returns the folder of the stopped run to resume, or None.

    Raises:
        ValueError: The stopped run had another configuration, see `check_same_run`.
    """
    kept = stopped_run(config.output or "") if goes_on(config) else None
    if kept is not None:
        check_same_run(kept, config)
        log.line(f"goes on with what is in {kept}")
    return kept


def check_same_run(folder: Path, config: Configuration) -> list[str]:
    """Checks that a stopped run had the same configuration.

    Returns:
        The keys that have changed, where `allow_config_change` allows that; a warning names them.

    Raises:
        ValueError: Keys have changed (the message names them), or the file of the run is damaged.
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
    """Returns the keys in which a configuration differs from an earlier one."""
    now = config.to_dict()
    # An earlier version of this package may not have had the key.
    before = {field.name: field.default for field in dataclasses.fields(config)} | dict(before)
    return [key for key in now if key not in _OF_THE_START and before.get(key) != now[key]]


def check_unchanged(kept: Path, config: Configuration, keys: Collection[str], of: str) -> None:
    """Checks the keys that must not change when a stopped run is resumed.

    Args:
        of: Description of what the weights belong to, for the error message.

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
        may_change: Whether other data are allowed; then a warning names them.

    Returns:
        The keys of data that have changed; those without a hash in the report count as unchanged.

    Raises:
        ValueError: It had other data, or its report is damaged.
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


def _same_command_goes_on(config: Any) -> bool:
    return bool(config.resume and not config.overwrite)


def attempt_variables(note: Path, worker: int, begun: bool) -> dict[str, str]:
    """Returns the environment variables with which a launcher informs a worker of earlier attempts.

    Args:
        note: A path that all attempts share; no file exists there at first.
        begun: Whether the file existed when this attempt started.
    """
    # Only worker 0 knows that an older output has been removed.
    return {_NOTE: str(note) if worker == 0 else "", _BEGUN: "1" if begun else ""}


def note_begun(environment: Mapping[str, str] = os.environ) -> None:
    """Records for later attempts that the run of this command has its folder."""
    note = environment.get(_NOTE)
    if note:
        with suppress(OSError):  # the launcher may have been killed, and its folder be gone
            Path(note).touch()


def is_begun(environment: Mapping[str, str] = os.environ) -> bool:
    """Returns whether an earlier attempt of this command has begun the run."""
    return bool(environment.get(_BEGUN))
