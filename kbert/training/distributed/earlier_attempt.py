"""Notes between the attempts of a launched command: whether an earlier one had begun the run.

A launcher starts the same command again. With `overwrite` the command starts from scratch, except
that it resumes what its own earlier attempt has begun.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# A file that worker 0 creates when its run has begun; and whether an earlier attempt did.
_NOTE, _BEGUN = "KBERT_LAUNCH_NOTE", "KBERT_LAUNCH_BEGUN"


def attempt_variables(note: Path, worker: int, begun: bool) -> dict[str, str]:
    """Returns the environment variables with which a launcher informs a worker of earlier attempts.

    Args:
        note: A path that all attempts share; no file exists there at first.
        worker: The number of the worker.
        begun: Whether the file existed when this attempt started.
    """
    # Only worker 0 knows that an older output has been removed.
    return {_NOTE: str(note) if worker == 0 else "", _BEGUN: "1" if begun else ""}


def note_begun(environment: Mapping[str, str] = os.environ) -> None:
    """Records for later attempts that the run of this command has its folder.

    Args:
        environment: The environment variables of the process.
    """
    note = environment.get(_NOTE)
    if note:
        with suppress(OSError):  # the launcher may have been killed, and its folder be gone
            Path(note).touch()


def is_begun(environment: Mapping[str, str] = os.environ) -> bool:
    """Returns whether an earlier attempt of this command has begun the run.

    Args:
        environment: The environment variables of the process.
    """
    return bool(environment.get(_BEGUN))
