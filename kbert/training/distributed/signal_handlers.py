"""Handlers of signals for as long as a block runs."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def handled_by(handler: Any, numbers: Sequence[int]) -> Iterator[None]:
    """Gives signals to a handler while the block runs, then to those that had them.

    In other threads than the main one no signal can be taken, and a signal that the process was
    told to ignore stays ignored.

    Args:
        handler: As `signal.signal` takes it.
        numbers: The signals.
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
            signal.signal(number, own)
