"""A run's folder, `RUN.incomplete` while it is written, then `RUN`."""

import errno
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kbert.options.configuration import Configuration
from kbert.options.kinds import config_text, read_config_file
from kbert.storage.files import remove_leftovers, rename_directory, write_atomically
from kbert.storage.json_files import read_json_object
from kbert.training.config.any_config import StoredConfig, config_from_dict

INCOMPLETE = ".incomplete"
CONFIG = "config.yaml"
METRICS = "metrics.json"
REPORT = "report.json"
LOG = "log.txt"
ENVIRONMENT = "environment.json"
MODEL = "model"
CHECKPOINTS = "checkpoints"
# A file in an unfinished run, which marks it as such even when copied or renamed.
MARK = "INCOMPLETE"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_STOPPED = (
    "Received a run that was stopped before its end, or is still being written: its numbers and "
    "weights are not those of a finished run"
)


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, `config.yaml` and `metrics.json`."""

    directory: Path
    config: StoredConfig
    metrics: dict[str, Any]

    @property
    def model_directory(self) -> Path:
        """The folder of the trained model, in kbert's own format."""
        folder = self.directory / MODEL
        if not folder.is_dir():
            raise FileNotFoundError(
                f"`{self.directory}` must hold a model. Received: none, no {MODEL}/: of a grid, "
                "only the winner keeps one"
            )
        return folder


def check_output(output: str | os.PathLike[str], overwrite: bool, resume: bool = False) -> None:
    """Checks, before any work, that a run may be written; see `run_directory`."""
    target = Path(output)
    partial = _partial(target)
    if target.name.endswith(INCOMPLETE):
        named = f"one of a run, which is stopped while {INCOMPLETE} stands behind it"
        raise ValueError(f"`output` must be {named}. Received: output={output!s}")
    if target.is_file():
        raise NotADirectoryError(f"`output` must be a folder. Received a file: output={output!s}")
    if target.is_symlink() and not target.exists():
        raise FileNotFoundError(
            f"`output` must be a folder. Received a link that leads nowhere: output={output!s}"
        )
    if target.exists() and not overwrite:
        raise FileExistsError(
            "`output` must not exist yet, unless overwrite is true (--overwrite). "
            f"Received: output={output!s}"
        )
    if target.exists() and any(target.iterdir()) and not (target / CONFIG).is_file():
        raise FileExistsError(
            f"`output` must be new, empty, or an old run: nothing else is overwritten. Received: "
            f"output={output!s}, which has no {CONFIG}"
        )
    if partial.exists() and not overwrite and not resume:
        raise FileExistsError(
            f"`{partial}` is there: a run that was stopped before its end, or one that is still "
            f"being written. Set resume to go on with it, or overwrite to start anew"
        )


@contextmanager
def run_directory(
    output: str | os.PathLike[str], overwrite: bool = False, resume: bool = False
) -> Iterator[Path]:
    """Creates the folder `<output>.incomplete` to write into, renamed to `output` at the end.

    When the block raises or the process is killed, `<output>.incomplete` stays, for inspection or
    to be resumed; it is never loaded as a run. A replaced run stays until the new one is complete.
    With `overwrite` a run, or the folder of a stopped run, may be replaced; with `resume` the
    folder holds the files of the stopped run.

    Raises:
        FileExistsError: Something may not be replaced, or another process is writing this run.
    """
    check_output(output, overwrite, resume)
    target = Path(output)
    partial = _partial(target)
    # The lock is released with the process, however it ends.
    partial.parent.mkdir(parents=True, exist_ok=True)
    if partial.exists() and not resume:
        with _locked(partial):
            shutil.rmtree(partial)
    partial.mkdir(exist_ok=resume)
    with _locked(partial):
        remove_leftovers(partial)  # of a process that was killed while it wrote there
        with _room_needed(partial, resume):
            yield partial
            rename_directory(partial, target, overwrite=overwrite, without=MARK)


def stopped_run(output: str | os.PathLike[str]) -> Path | None:
    """Returns the folder of a stopped run, or None."""
    partial = _partial(Path(output))
    return partial if partial.is_dir() else None


def load_run(directory: str | os.PathLike[str]) -> Run:
    """Opens a finished run; its model is loaded by `kbert.tasks.load(run.model_directory)`.

    A FileNotFoundError means that there is no such run, or that it is not finished; a ValueError
    that one of its files is damaged.
    """
    folder = Path(directory)
    partial = _partial(folder)
    if (folder / MARK).exists() or folder.name.endswith(INCOMPLETE):
        raise FileNotFoundError(f"`{folder}` must be a finished run. {_STOPPED}")
    if not folder.exists() and partial.exists():
        raise FileNotFoundError(
            f"`{folder}` must be a finished run: only `{partial}` is there. {_STOPPED}"
        )
    if not (folder / CONFIG).is_file() or not (folder / METRICS).is_file():
        raise FileNotFoundError(
            f"`directory` must be a run directory, with {CONFIG} and {METRICS} in it. Received: "
            f"directory={str(folder)!r}"
        )
    metrics = read_json_object(folder / METRICS)
    values = read_config_file(folder / CONFIG)
    return Run(folder, config_from_dict(values, str(folder / CONFIG)), metrics)


def is_run(directory: str | os.PathLike[str]) -> bool:
    """Returns whether a folder is a run, finished or not."""
    folder = Path(directory)
    if not folder.exists() and _partial(folder).exists():
        return True
    return folder.is_dir() and ((folder / CONFIG).is_file() or (folder / MARK).exists())


def model_of(directory: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Returns the folder of a finished run's model; what is no run, such as a name, as it is."""
    return load_run(directory).model_directory if is_run(directory) else directory


def training_facts(run: Path) -> dict[str, Any] | None:
    """Returns facts of a run for the card of an export: names of files, without folders.

    What is no run, such as a model's folder, has none.
    """
    if not is_run(run):
        return None
    report = read_json_object(run / REPORT)
    metrics = load_run(run).metrics.get("final") or {}
    return {
        "data": [
            {
                "part": part,
                "examples": one["count"],
                "source": ", ".join(Path(name).name for name in str(one["source"]).split(", ")),
            }
            for part, one in (report.get("examples") or {}).items()
        ],
        "metrics": {
            part: {name: value for name, value in values.items() if isinstance(value, int | float)}
            for part, values in metrics.items()
            if isinstance(values, dict)
        },
    }


def write_config(config: Configuration, folder: Path) -> None:
    """Writes `config.yaml`, with every key."""
    write_atomically(folder / CONFIG, config_text(config.to_dict()))


def write_json(value: Any, path: Path) -> None:
    """Writes a value as indented JSON; NaN is an error."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_atomically(path, text + "\n")


def _partial(target: Path) -> Path:
    """Returns the `.incomplete` sibling; messages show the path as given, except "." and ".."."""
    named = target if target.name not in ("", "..") else Path(os.path.abspath(target))
    return named.with_name(f"{named.name}{INCOMPLETE}")


class NoRoomError(OSError):
    """A full disk, with a message on the run; `reason` is the system's message."""

    reason: str | None = None

    def __str__(self) -> str:
        return str(self.strerror)


@contextmanager
def _room_needed(partial: Path, resume: bool) -> Iterator[None]:
    """Raises errors of a full disk with a message on the run."""
    try:
        yield
    except OSError as error:
        # Where a folder is copied, Python has a list of messages in the place of a number.
        code = next((n for n in _NO_ROOM if error.errno == n or f"[Errno {n}]" in str(error)), None)
        if code is None:
            raise
        # A sub-run may have raised its own message, but the command is that of this run.
        reason = error.reason if isinstance(error, NoRoomError) else os.strerror(code)
        way = "" if resume else " without overwrite, and with resume,"
        told = NoRoomError(
            code,
            f"there is no room left to write ({reason}). What {partial} holds, the last "
            f"state too, stands: make room, and the same command{way} goes on with it",
        )
        told.reason = reason
        raise told from error


@contextmanager
def _locked(partial: Path) -> Iterator[None]:
    """Holds the lock of an incomplete run; another process that holds it is an error."""
    with (partial / MARK).open("a") as mark:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise FileExistsError(
                f"`{partial}` is being written by another process: wait for it, or choose another "
                "output"
            ) from error
        yield


def tell_stage(text: str) -> None:
    """Writes a stage, such as "reading train.tsv", to stderr, before a run has its log."""
    sys.stderr.write(f"{text} ...\n")
    sys.stderr.flush()
