"""A lock that one process holds at a time, and that goes with the process, however it ends."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def file_lock(path: str | os.PathLike[str], on_wait: Callable[[], None]) -> Iterator[None]:
    """Holds the lock of a file while the block runs; waits for whoever holds it.

    Threads of one process exclude each other too. The file stays: where it was removed, somebody
    might hold the lock of a file that nobody else can see.

    Args:
        path: The file, empty; made if need be. Its folder must be there.
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
