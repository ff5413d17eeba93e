"""Signals that ask a training to stop: it stops after saving its state, and can be resumed."""

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
GO_ON = "The same command goes on from the last state"
# Of the outermost block: the run of a seed is resumed by the command for all seeds.
_outermost: ContextVar[str | None] = ContextVar("_outermost", default=None)


@contextmanager
def handled_by(handler: Any, numbers: Sequence[int]) -> Iterator[None]:
    """Installs a signal handler while the block runs, then restores the handlers before it.

    Only the main thread can handle signals, and a signal that the process ignores stays ignored.
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

        At its end, TrainingStopped is raised if a signal came to which the block did not react.
        """
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self.received is not None:
            raise TrainingStopped(f"stopped by {self.received}. {self.how_to_resume}")

    def handle(self, number: int, frame: FrameType | None = None) -> None:
        """Handles a signal.

        Raises:
            TrainingStopped: The signal is not deferred.
            KeyboardInterrupt: Ctrl-C that is not deferred, or the second one.
        """
        name = signal.Signals(number).name
        if number == signal.SIGINT and (not self._waits or self.received is not None):
            raise KeyboardInterrupt
        if not self._waits:
            raise TrainingStopped(f"stopped by {name}. {self.how_to_resume}")
        if self.received is None:
            self.received = name
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
