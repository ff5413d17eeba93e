"""Several workers on one machine: started together, and started again when one of them dies."""

import contextlib
import math
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kbert.training.distributed.earlier_attempt import attempt_variables
from kbert.training.distributed.locked_temp_dir import LAUNCH, WORKER, own_folder, remove_left
from kbert.training.distributed.stop_signals import handled_by
from kbert.training.distributed.tf_config import VARIABLE, worker_config

# What a command of kbert exits with for bad input: to start it again would change nothing.
_BAD_INPUT = 2
_POLL = 0.2
# What one exits with that was asked to stop, and can be gone on with.
_STOPPED = 75
# Until a worker that lost another one ends by itself, with its own message; and until one ends
# that was asked to because another one failed.
_PATIENCE, _ASKED = 45.0, 10.0


@dataclass(frozen=True)
class _Worker:
    number: int
    process: subprocess.Popen[str]
    reader: threading.Thread


def launch_workers(
    command: Sequence[str], workers: int, restarts: int = 3, patience: float = _PATIENCE
) -> int:
    """Runs a command in several processes that know each other by TF_CONFIG.

    When one of them dies, the others end too, and all are started again: a run that saves states
    goes on from the last one, also with `overwrite`, which is for what was there before. Where
    there are cores enough, each worker has some for itself.
    Stdout is that of the first worker; stderr has the lines of all, with their numbers.

    Args:
        command: The command and its arguments.
        workers: How many processes.
        restarts: How often all of them may be started again.
        patience: Seconds that a worker has to end by itself, before it is made to.

    Returns:
        0, or the exit code of the worker that failed; 128 and more for a signal, as shells count.

    Raises:
        ValueError: A number is too small.
        SystemExit: SIGTERM came, and all workers have ended, each in its own time; a second one
            ends them at once. The code is 75 where they stopped in order.
    """
    if workers < 1:
        raise ValueError(f"`workers` must be at least 1. Received: workers={workers}")
    if restarts < 0:
        raise ValueError(f"`restarts` must not be negative. Received: restarts={restarts}")
    with own_folder(LAUNCH) as folder:
        for attempt in range(restarts + 1):
            failed = _first_failed_of_all(command, workers, patience, folder / "begun")
            if failed is None:
                return 0
            code = failed.process.returncode
            code = code if code >= 0 else 128 - code
            _tell(f"worker {failed.number} ended with {code}")
            if code == _BAD_INPUT:
                break
            if attempt < restarts:
                _tell(f"all {workers} workers start again ({attempt + 1} of {restarts} times)")
    return code


def _first_failed_of_all(
    command: Sequence[str], workers: int, patience: float, note: Path
) -> _Worker | None:
    """Starts all workers, and returns the first that failed when all of them have ended."""
    started: list[_Worker] = []
    asked = _Asked()
    with handled_by(asked.handle, (signal.SIGTERM, signal.SIGINT)):
        try:
            with asked.deferred():  # a worker that nobody knows of would not be ended
                _start(started, command, workers, note)
            failed = _first_failed(started)
            _wait(started, patience)
        except (SystemExit, KeyboardInterrupt):
            _end(started, math.inf, patience)  # a state that they write must become whole
            if any(worker.process.returncode == _STOPPED for worker in started):
                raise SystemExit(_STOPPED) from None
            raise
        finally:
            _end(started, _ASKED, _ASKED)
            remove_left(WORKER)
    return failed


class _Asked:
    """What SIGTERM and Ctrl-C do to a launcher: they end it, and so its workers."""

    def __init__(self) -> None:
        self._received: int | None = None
        self._waits = False

    def handle(self, number: int, frame: Any = None) -> None:
        if self._waits:
            self._received = number
        elif number == signal.SIGINT:
            raise KeyboardInterrupt
        else:
            raise SystemExit(128 + number)

    @contextlib.contextmanager
    def deferred(self) -> Iterator[None]:
        """A signal that comes while the block runs has its effect at the end."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self._received is not None:
            self.handle(self._received)


def free_addresses(count: int) -> tuple[str, ...]:
    """Addresses of this machine at which nothing listens now.

    Args:
        count: How many.
    """
    sockets = [socket.socket() for _ in range(count)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return tuple(f"127.0.0.1:{one.getsockname()[1]}" for one in sockets)
    finally:
        for one in sockets:
            one.close()


def cores_of(worker: int, workers: int, cores: Sequence[int]) -> set[int]:
    """The cores that one of several workers uses.

    Args:
        worker: Its number, from 0.
        workers: How many there are.
        cores: The cores of all; where there are fewer than workers, all use all.
    """
    if len(cores) < workers:
        return set(cores)
    return set(cores[worker::workers])


def _start(started: list[_Worker], command: Sequence[str], workers: int, note: Path) -> None:
    """Starts all workers; each is in the list as soon as it is there, whatever comes then."""
    addresses = free_addresses(workers)
    cores = sorted(os.sched_getaffinity(0))
    begun = note.exists()
    for number in range(workers):
        variables = attempt_variables(note, number, begun)
        process = subprocess.Popen(
            list(command),
            env={**os.environ, **variables, VARIABLE: worker_config(addresses, number)},
            stdout=None if number == 0 else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        reader = threading.Thread(target=_pass_on, args=(number, process.stderr), daemon=True)
        started.append(_Worker(number, process, reader))
        reader.start()
        os.sched_setaffinity(process.pid, cores_of(number, workers, cores))


def _first_failed(started: Sequence[_Worker]) -> _Worker | None:
    """Waits until all have done their work, or one has failed."""
    while True:
        codes = [worker.process.poll() for worker in started]
        for worker, code in zip(started, codes):
            if code:
                return worker
        if None not in codes:
            return None
        time.sleep(_POLL)


def _running(started: Sequence[_Worker]) -> list[subprocess.Popen[str]]:
    return [worker.process for worker in started if worker.process.poll() is None]


def _wait(started: Sequence[_Worker], seconds: float) -> None:
    """Waits until all have ended, at most so long."""
    last = time.monotonic() + seconds
    while _running(started) and time.monotonic() < last:
        time.sleep(_POLL)


def _end(started: Sequence[_Worker], seconds: float, patience: float) -> None:
    """Ends what still runs: it is asked to, and then made to.

    Args:
        started: All workers.
        seconds: That they have.
        patience: Seconds that they have when one has not ended in order, whom they may wait for.
            As often they are asked again: TensorFlow loses a signal that comes while it connects
            them.
    """
    last = time.monotonic() + seconds
    asked = -math.inf
    try:
        while running := _running(started):
            now = time.monotonic()
            if any(worker.process.returncode not in (None, 0, _STOPPED) for worker in started):
                last = min(last, now + patience)
            if now > last:
                break
            if now > asked + patience:
                asked = now
                for process in running:
                    process.send_signal(signal.SIGTERM)
            time.sleep(_POLL)
    finally:  # asked once more
        for process in _running(started):
            process.kill()
            process.wait()
    for worker in started:
        if worker.reader.is_alive():
            worker.reader.join(1.0)


def _pass_on(number: int, lines: IO[str]) -> None:
    with lines:
        for line in lines:
            sys.stderr.write(f"[{number}] {line}")
            sys.stderr.flush()


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
