"""Launcher of several workers on one machine, which restarts all of them when one dies."""

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

from kbert.training.distributed.locked_temp_dir import LAUNCH, WORKER, own_folder, remove_left
from kbert.training.distributed.tf_config import VARIABLE, worker_config
from kbert.training.runs.stopped_runs import attempt_variables, handled_by

# Exit code of kbert's commands for bad input: restarting would not help.
_BAD_INPUT = 2
_POLL = 0.2
# Exit code of a worker that was asked to stop, and can be resumed.
_STOPPED = 75
# Seconds until a worker that lost another one ends by itself, with its own message; and until one
# ends that was asked to because another one failed.
_PATIENCE, _ASKED = 45.0, 10.0


@dataclass(frozen=True)
class _Worker:
    number: int
    process: subprocess.Popen[str]
    reader: threading.Thread


def launch_workers(
    command: Sequence[str], workers: int, restarts: int = 3, patience: float = _PATIENCE
) -> int:
    """Runs a command in several processes that are connected by TF_CONFIG.

    When one of them dies, the others end too, and all are restarted, at most `restarts` times: a
    run that saves checkpoints resumes from the last one, also with `overwrite`, which only applies
    to earlier runs. If there are enough cores, each worker has its own. Stdout is worker 0's;
    stderr has the lines of all workers, with their numbers. A worker has `patience` seconds to end
    by itself, before it is terminated.

    Returns 0, or the exit code of the worker that failed; 128 plus its number for a signal, as in
    shells.

    Raises:
        SystemExit: SIGTERM came, and all workers have ended, each in its own time; a second one
            ends them at once. The code is 75 if they can be resumed.
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
            with asked.deferred():  # a worker that is not in the list would not be ended
                _start(started, command, workers, note)
            failed = _first_failed(started)
            last = time.monotonic() + patience
            while _running(started) and time.monotonic() < last:
                time.sleep(_POLL)
        except (SystemExit, KeyboardInterrupt):
            _end(started, math.inf, patience)  # a checkpoint being written must become complete
            if any(worker.process.returncode == _STOPPED for worker in started):
                raise SystemExit(_STOPPED) from None
            raise
        finally:
            _end(started, _ASKED, _ASKED)
            remove_left(WORKER)
    return failed


class _Asked:
    """Handler of SIGTERM and Ctrl-C, which end a launcher, and so its workers."""

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
        """Defers a signal that comes while the block runs to its end."""
        self._waits = True
        try:
            yield
        finally:
            self._waits = False
        if self._received is not None:
            self.handle(self._received)


def free_addresses(count: int) -> tuple[str, ...]:
    """Returns so many free addresses of this machine."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return tuple(f"127.0.0.1:{one.getsockname()[1]}" for one in sockets)


def cores_of(worker: int, workers: int, cores: Sequence[int]) -> set[int]:
    """Returns the cores of one of several workers; all of them if there are fewer than workers."""
    return set(cores if len(cores) < workers else cores[worker::workers])


def _start(started: list[_Worker], command: Sequence[str], workers: int, note: Path) -> None:
    """Starts all workers; each is in the list as soon as it runs, whatever fails afterwards."""
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
    """Waits until all have finished, or returns the first that failed."""
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


def _end(started: Sequence[_Worker], seconds: float, patience: float) -> None:
    """Ends the running workers within `seconds`: by SIGTERM, and then by SIGKILL.

    They have `patience` seconds when one has failed, for which they may wait. It is also the
    interval of repeated SIGTERMs: TensorFlow loses a signal that comes while it connects them. A
    training that has received one ignores the others.
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
    finally:  # also after a second signal
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
