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
from typing import IO, Any

from kbert.training.tf_config import VARIABLE, worker_config

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
    goes on from the last one. Where there are cores enough, each worker has some for itself.
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
    for attempt in range(restarts + 1):
        with _ending_in_order():
            started = _started(command, workers)
            try:
                failed = _first_failed(started)
                _wait(started, patience)
            except (SystemExit, KeyboardInterrupt):
                _end(started, math.inf)  # a state that they write must become whole
                if any(worker.process.returncode == _STOPPED for worker in started):
                    raise SystemExit(_STOPPED) from None
                raise
            finally:
                _end(started, _ASKED)
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


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Lets SIGTERM end the workers too; else they would go on without a launcher."""

    def end(number: int, frame: Any) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only there can signals be heard
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


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


def _started(command: Sequence[str], workers: int) -> list[_Worker]:
    addresses = free_addresses(workers)
    cores = sorted(os.sched_getaffinity(0))
    started = []
    for number in range(workers):
        process = subprocess.Popen(
            list(command),
            env={**os.environ, VARIABLE: worker_config(addresses, number)},
            stdout=None if number == 0 else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        os.sched_setaffinity(process.pid, cores_of(number, workers, cores))
        reader = threading.Thread(target=_pass_on, args=(number, process.stderr), daemon=True)
        reader.start()
        started.append(_Worker(number, process, reader))
    return started


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


def _wait(started: Sequence[_Worker], seconds: float) -> list[subprocess.Popen[str]]:
    """Waits until all have ended, and returns those that have not."""
    last = time.monotonic() + seconds
    while running := [worker.process for worker in started if worker.process.poll() is None]:
        if time.monotonic() > last:
            break
        time.sleep(_POLL)
    return running


def _end(started: Sequence[_Worker], seconds: float) -> None:
    """Ends what still runs: it is asked to, and then made to."""
    for process in _wait(started, 0.0):
        process.send_signal(signal.SIGTERM)
    try:
        _wait(started, seconds)
    finally:  # asked once more
        for process in _wait(started, 0.0):
            process.kill()
            process.wait()
    for worker in started:
        worker.reader.join(1.0)


def _pass_on(number: int, lines: IO[str]) -> None:
    with lines:
        for line in lines:
            sys.stderr.write(f"[{number}] {line}")
            sys.stderr.flush()


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
