"""Runs that are stopped: signals end a training after its state is saved, and a command resumes it.

A run is resumed with the same configuration and the same data; both are checked.
"""

import dataclasses
import logging
import os
import signal
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

from kbert.options.configuration import Configuration
from kbert.options.kinds import read_config_file
from kbert.storage.json_files import read_json_object
from kbert.training.runs.run_directory import CONFIG, METRICS, REPORT, stopped_run
from kbert.training.runs.run_log import RunLog

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
GO_ON = "The same command goes on from the last state"
# Of the outermost block: the run of a seed is resumed by the command for all seeds.
_outermost: ContextVar[str | None] = ContextVar("_outermost", default=None)
logger = logging.getLogger(__name__)
# Options of starting a run and of the files that it leaves, without effect on its results.
_OF_THE_START = ("output", "overwrite", "resume", "allow_config_change", "keep_states")
# Options of a run's states and curves: its results are the same with others.
_OF_THE_WAY = ("save_every", "tensorboard")
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


@contextmanager
def handled_by(handler: Any, numbers: Sequence[int]) -> Iterator[None]:
    """Installs a signal handler while the block runs, then restores the handlers before it.

    Only the main thread can handle signals, and a signal that the process ignores stays ignored,
    also if that began within the block.
    """
    before: dict[int, Any] = {}
    try:
        if threading.current_thread() is threading.main_thread():
            for number in numbers:
                own = signal.getsignal(number)
                if own not in (signal.SIG_IGN, None):  # None: not Python's, cannot be restored
                    before[number] = own
                    signal.signal(number, handler)
        yield
    finally:
        for number, own in before.items():
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, own)


class TrainingStopped(Exception):
    """Raised when a training was stopped by a signal; it can be resumed."""


class StopSignals:
    """The signals that this process has received; from `stop_signals`.

    `received` is the name of the signal that waits until the training can stop, or None;
    `how_to_resume` says it as a sentence without its full stop.
    """

    def __init__(self, how_to_resume: str) -> None:
        self.received: str | None = None
        self.how_to_resume = how_to_resume
        self._waits = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Makes signals only set `received` while the block runs; a second Ctrl-C ends the block.

        At its end, TrainingStopped is raised if a signal came to which the block did not react; and
        at its begin if one came before: Python loses what is raised within a callback of its
        garbage collector, such as that of JAX.
        """
        self._check()
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        self._check()

    def _check(self) -> None:
        if self.received is not None:
            raise TrainingStopped(f"stopped by {self.received}. {self.how_to_resume}")

    def handle(self, number: int, frame: FrameType | None = None) -> None:
        """Handles a signal; the worker of a launcher ignores later SIGTERMs, to the process' end.

        Raises:
            TrainingStopped: The signal is not deferred.
            KeyboardInterrupt: Ctrl-C that is not deferred, or the second one.
        """
        before, name = self.received, signal.Signals(number).name
        self.received = before or name
        if number == signal.SIGTERM and _NOTE in os.environ:
            # The launcher repeats it until the process has ended, for workers that lost the first.
            signal.signal(number, signal.SIG_IGN)
        if number == signal.SIGINT and (not self._waits or before is not None):
            raise KeyboardInterrupt
        if not self._waits:
            raise TrainingStopped(f"stopped by {name}. {self.how_to_resume}")
        if before is None:
            # The process may be in the middle of writing to sys.stderr, which is not reentrant.
            os.write(2, f"\n{name}: stops when the running step is done and saved\n".encode())


@contextmanager
def stop_signals(how_to_resume: str = GO_ON) -> Iterator[StopSignals]:
    """Handles SIGTERM and SIGINT while the block runs.

    `how_to_resume` is a sentence without its full stop; within another such block, the outer one's
    is used. For threads and ignored signals see `handled_by`.
    """
    stop = StopSignals(_outermost.get() or how_to_resume)
    token = _outermost.set(stop.how_to_resume)
    try:
        with handled_by(stop.handle, _SIGNALS):
            yield stop
    finally:
        _outermost.reset(token)


def resumes(config: Any) -> bool:
    """Returns whether a configuration resumes a stopped run.

    A later attempt of a launcher always does: the run is its own.
    """
    return is_begun() or _same_command_resumes(config)


def how_to_resume(config: Any) -> str:
    """Returns how to resume a run after a stop, as a sentence without its full stop."""
    if _same_command_resumes(config):
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
    before = read_json_object(folder / REPORT)
    if changed or any(before.get(key) != report[key] for key in report if key.endswith(_HASH)):
        (folder / METRICS).unlink()
        return False
    return True


def kept_run(config: Any, log: RunLog) -> Path | None:
    """Returns the folder of the stopped run to resume, checked by `check_same_run`, or None."""
    kept = stopped_run(config.output or "") if resumes(config) else None
    if kept is not None:
        check_same_run(kept, config)
        log.line(f"goes on with what is in {kept}")
    return kept


def check_same_run(folder: Path, config: Configuration) -> list[str]:
    """Checks that a stopped run had the same configuration.

    Returns the keys that have changed where `allow_config_change` allows it; a warning names them.

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


def changed_keys(
    before: Mapping[str, Any], config: Configuration, results_alone: bool = False
) -> list[str]:
    """Returns the keys in which a configuration differs from an earlier one.

    With `results_alone` only those count that the results of the run depend on.
    """
    now = config.to_dict()
    # An earlier version of this package may not have had the key.
    before = {field.name: field.default for field in dataclasses.fields(config)} | dict(before)
    left = (*_OF_THE_START, *(_OF_THE_WAY if results_alone else ()))
    return [key for key in now if key not in left and before.get(key) != now[key]]


def check_unchanged(kept: Path, config: Configuration, keys: Collection[str], of: str) -> None:
    """Checks the keys that must not change when a stopped run is resumed.

    Raises:
        ValueError: One has changed; the message names it, and `of` what the weights are.
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
    """Returns the keys of data that have changed since a run was stopped; a warning names the data.

    Data without a hash in the run's report count as unchanged.

    Raises:
        ValueError: Data have changed and may not, or the report is damaged.
    """
    if not (folder / REPORT).is_file():
        return []
    report = read_json_object(folder / REPORT)
    changed = [name for name in hashes if report.get(name, hashes[name]) != hashes[name]]
    if not changed:
        return []
    told = " and ".join(dict.fromkeys(map(_in_words, changed)))
    if not may_change:
        raise ValueError(
            f"`resume` must go on with the same data as the run in {folder}. Received: "
            f"others {told}; the files have changed since. Set allow_config_change "
            "(--allow-config-change) to go on all the same, or overwrite (--overwrite) to start "
            "anew"
        )
    logger.warning("goes on with other data than before %s", told)
    return changed


def _in_words(name: str) -> str:
    """Returns the data of a hash in words; of several tasks its key begins with the task."""
    if name in _OF_WHAT:
        return _OF_WHAT[name]
    key = next((key for key in _OF_WHAT if name.endswith(f"_{key}")), None)
    return name if key is None else f"{_OF_WHAT[key]} ({name.removesuffix(f'_{key}')})"


def _same_command_resumes(config: Any) -> bool:
    return bool(config.resume and not config.overwrite)


def attempt_variables(note: Path, worker: int, begun: bool) -> dict[str, str]:
    """Returns the environment variables with which a launcher informs a worker of earlier attempts.

    All attempts share the path `note`; `begun` is whether a file stood there before this one.
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
