"""A lock that one process holds at a time and that is released however the process ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: str | os.PathLike[str], on_wait: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of a file while the block runs; waits until it is free.

    Threads of one process exclude each other too. The file is not removed: otherwise a process
    might hold the lock of a file that no other one can see.

    Args:
        path: The file, empty; created if missing. Its folder must exist.
        on_wait: Called once before it waits.

    Yields:
        Nothing.
    """
    with Path(path).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_wait()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
