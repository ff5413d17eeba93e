"""Signals that ask a training to stop: it does so where nothing is lost, and can be taken up."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
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


_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class TrainingStopped(Exception):
    """A training was asked to stop, and did; it can be gone on with."""


class StopSignals:
    """What was asked of this process; from `stop_signals`.

    Args:
        way_on: As `stop_signals`.

    Attributes:
        received: The name of the signal that waits for a good place to stop, or None.
        way_on: As given.
    """

    def __init__(self, way_on: str) -> None:
        self.received: str | None = None
        self.way_on = way_on
        self._waits = False

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """While the block runs, a signal only sets `received`; a second Ctrl-C ends the block.

        Raises:
            TrainingStopped: Nobody looked at `received` until the end.
        """
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self.received is not None:
            raise TrainingStopped(f"stopped by {self.received}. {self.way_on}")

    def handle(self, number: int, frame: FrameType | None = None) -> None:
        """Takes a signal.

        Args:
            number: Its number.
            frame: Where the process is; not looked at.

        Raises:
            TrainingStopped: Nothing has to be waited for.
            KeyboardInterrupt: Ctrl-C, where nothing has to be waited for, or for the second time.
        """
        name = signal.Signals(number).name
        if number == signal.SIGINT and (not self._waits or self.received is not None):
            raise KeyboardInterrupt
        if not self._waits:
            raise TrainingStopped(f"stopped by {name}. {self.way_on}")
        if self.received is None:
            self.received = name
            # The process may be in the middle of writing to sys.stderr, which takes no second one.
            os.write(2, f"\n{name}: stops when the running step is done and saved\n".encode())


GO_ON = "The same command goes on from the last state"
# Of the outermost block: the run of a seed is started again by the command for all seeds.
_outermost: ContextVar[str | None] = ContextVar("_outermost", default=None)


@contextmanager
def stop_signals(way_on: str = GO_ON) -> Iterator[StopSignals]:
    """Takes SIGTERM and SIGINT while the block runs.

    In other threads than the main one no signal can be taken, and a signal that the process was
    told to ignore stays ignored.

    Args:
        way_on: How a stopped training goes on, as a sentence without its stop. Within another such
            block, that one's is told.

    Yields:
        What is asked.
    """
    stop = StopSignals(_outermost.get() or way_on)
    token = _outermost.set(stop.way_on)
    try:
        with handled_by(stop.handle, _SIGNALS):
            yield stop
    finally:
        _outermost.reset(token)
