"""What an attempt of a launched command knows of the one before: whether it had begun its run.

A launcher starts the same command again. With `overwrite` the command begins anew, but not what its
own earlier attempt has begun.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

# A file that the first worker makes when its run is begun; and whether an earlier one did.
_NOTE, _BEGUN = "KBERT_LAUNCH_NOTE", "KBERT_LAUNCH_BEGUN"


def attempt_variables(note: Path, worker: int, begun: bool) -> dict[str, str]:
    """The variables by which a launcher tells a worker of the attempts before.

    Args:
        note: A path that all attempts share, and where no file is at first.
        worker: The number of the worker.
        begun: Whether the file was there when this attempt started.
    """
    # The first worker alone knows that what stood there before is gone.
    return {_NOTE: str(note) if worker == 0 else "", _BEGUN: "1" if begun else ""}


def note_begun(environment: Mapping[str, str] = os.environ) -> None:
    """Notes that the run of this command has its folder, for the attempts after this one.

    Args:
        environment: The variables of the process.
    """
    note = environment.get(_NOTE)
    if note:
        with suppress(OSError):  # the launcher may have been killed, and its folder be gone
            Path(note).touch()


def is_begun(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether an earlier attempt of this command has begun the run.

    Args:
        environment: The variables of the process.
    """
    return bool(environment.get(_BEGUN))
