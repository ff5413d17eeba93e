"""Temporary folders, removed at the end of their process, or by the next one if it was killed."""

import contextlib
import fcntl
import os
import platform
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Kinds of folders, which are prefixes of their names.
WORKER, LAUNCH = "kbert-worker", "kbert-launch"


@contextmanager
def own_folder(kind: str) -> Iterator[Path]:
    """Creates a temporary folder for this process alone, and removes it at the end.

    This process holds its lock, so `remove_left` recognizes folders of killed processes.
    """
    name = f"{_beginning(kind)}{secrets.token_hex(6)}"
    folder = Path(tempfile.gettempdir(), name)
    hidden = folder.with_name(f".{name}")  # until it is locked
    hidden.mkdir(mode=0o700)
    descriptor = os.open(hidden, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # there are file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        hidden.rename(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_left(kind: str) -> list[Path]:
    """Removes the folders that killed processes of this user left on this machine; returns them."""
    found = Path(tempfile.gettempdir()).glob(f"{_beginning(kind)}*")
    return [folder for folder in sorted(found) if _removed(folder)]


def _beginning(kind: str) -> str:
    """Returns the prefix of names; machines may share the temporary folder, but not its locks."""
    return f"{kind}-{platform.node()}-"


def _removed(folder: Path) -> bool:
    """Removes a folder unless a process holds its lock; returns whether it did."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.getuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
