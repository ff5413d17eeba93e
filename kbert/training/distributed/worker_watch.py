"""A worker's watch over the others: it waits for them at its start, then a thread polls them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kbert.training.distributed.tf_config import VARIABLE, Cluster, read_cluster, worker_config
from kbert.training.runs.stopped_runs import handled_by

# The exit code of a process whose peers are gone; EX_TEMPFAIL of sysexits.h.
LOST = 75
EVERY, _ANSWER = 5.0, 5.0
# Consecutive failures that count; a single one may be a full backlog.
_MOST_FAILURES = 3
# Before its first answer a worker may still be starting.
START = 300.0
# Seconds that the training has to notice by itself, and to end in order.
GRACE = 15
_SOON = 0.5
# SIGINT ends a process at once unless it is handled; with SIGALRM the guard ends it.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
_PROGRAM = "from kbert.training.distributed.worker_watch import guard; guard()"
# Seconds that a process has to end after a signal, before it is killed.
_ENDS = 5.0


class LostWorker(ConnectionError):
    """Raised when another worker does not answer; TensorFlow needs a new process to resume."""


def end_within(seconds: int) -> None:
    """Lets the system end this process after some time, whatever it waits for then.

    Without the others TensorFlow may never finish its own cleanup.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)


def lost(cluster: Cluster, workers: Sequence[int], reason: str) -> str:
    """Returns the message that workers are gone, and what to do; none if it is unknown which."""
    named = ", ".join(f"worker {worker} ({cluster.addresses[worker]})" for worker in workers)
    return (
        f"all {len(cluster.addresses)} workers must answer as long as a training goes on. "
        f"Received: {reason} from {named or 'one of them'}. Worker {cluster.worker} stops too; "
        "start all of them again, and a run that saves states goes on from the last one"
    )


def answers(address: str, seconds: float = _ANSWER) -> bool:
    """Returns whether a process listens at an address."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), seconds):
            return True
    except OSError:
        return False


@contextmanager
def watched(
    cluster: Cluster, every: float = EVERY, start: float = START, grace: float = GRACE
) -> Iterator[None]:
    """Ends this process, with a message and the exit code 75, when another worker is gone.

    TensorFlow notices too, and mostly raises an error within seconds. But it might wait an hour
    for a worker that never appeared, or whose machine is gone. The training has `grace` seconds to
    end by itself.
    """
    over = threading.Event()

    def watch() -> None:
        gone = first_gone(cluster, over, every, start)
        if gone is None or over.wait(grace):
            return
        sys.stderr.write(f"Error: {lost(cluster, gone, 'no answer')}\n")
        sys.stderr.flush()
        os._exit(LOST)  # the main thread may wait for them forever

    thread = threading.Thread(target=watch, name="peers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def first_gone(
    cluster: Cluster, over: threading.Event, every: float, start: float
) -> list[int] | None:
    """Waits until workers are gone, and returns their indices; None if `over` was set before."""
    peers = [i for i in range(len(cluster.addresses)) if i != cluster.worker]
    begin = time.monotonic()
    seen: set[int] = set()
    failures = dict.fromkeys(peers, 0)
    while not over.wait(every):
        answering = {peer for peer in peers if answers(cluster.addresses[peer])}
        seen |= answering
        failures = {peer: 0 if peer in answering else failures[peer] + 1 for peer in peers}
        late = time.monotonic() - begin > start
        gone = [p for p in peers if failures[p] >= _MOST_FAILURES and (p in seen or late)]
        if gone:
            return gone
    return None


def wait_for_others(cluster: Cluster, start: float = START) -> None:
    """Waits, `start` seconds at most, until a process listens at the address of every other worker.

    TensorFlow would wait too, but in one call in which neither threads nor signal handlers of
    Python run. So it is called when all are there: each worker listens at its own address until it
    has seen the others, and then TensorFlow does.

    Raises:
        LostWorker: Another worker did not appear.
        OSError: The port of this worker is in use.
    """
    missing = [i for i in range(len(cluster.addresses)) if i != cluster.worker]
    last = time.monotonic() + start
    with _listening(cluster) as own:
        while True:
            _accept(own)
            missing = [i for i in missing if not answers(cluster.addresses[i])]
            if not missing:
                return
            if time.monotonic() > last:
                raise LostWorker(lost(cluster, missing, "no answer"))
            time.sleep(_SOON)


def taken_port(cluster: Cluster, error: Exception) -> OSError:
    """Returns the error for a port of this worker that is in use."""
    return OSError(
        f"{VARIABLE} must name an address for worker {cluster.worker} at whose port nothing "
        f"listens on this machine. Received: {cluster.addresses[cluster.worker]} "
        f"({' '.join(str(error).split())[:300]})"
    )


@contextmanager
def ended_without_others(
    cluster: Cluster, every: float = EVERY, start: float = START
) -> Iterator[None]:
    """Lets a process be ended while the block, one call of TensorFlow, waits for other workers.

    They were there just now, but may be gone. A small guard process polls their addresses: where
    one is gone it reports that, and ends this process with SIGALRM (exit code 142 in a shell).
    Ctrl-C ends it at once; SIGTERM does not, as TensorFlow handles it itself in that call.
    """
    if len(cluster.addresses) < 2:
        yield
        return
    variables = {
        **os.environ,
        VARIABLE: worker_config(cluster.addresses, cluster.worker),
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    command = [sys.executable, "-c", _PROGRAM, str(os.getpid()), str(every), str(start)]
    # The pipe closes with this process; signals of a terminal are not for the guard.
    # TensorFlow's own handler of SIGTERM is removed too, as it would hide the signal from Python.
    with handled_by(signal.SIG_DFL, _SIGNALS), subprocess.Popen(
        command, stdin=subprocess.PIPE, env=variables, start_new_session=True
    ) as asking:
        try:
            yield
        finally:
            asking.kill()


def guard() -> None:
    """Runs the guard process: ends its parent when another worker is gone, and ends with it.

    Its command-line arguments are the parent's process id, and the seconds `every` and `start`; its
    stdin is a pipe that closes when the parent ends.
    """
    parent, every, start = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    over = threading.Event()

    def wait() -> None:
        os.read(0, 1)
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    cluster = read_cluster()
    gone = first_gone(cluster, over, every, start)
    if gone is None:
        return
    sys.stderr.write(f"Error: {lost(cluster, gone, 'no answer')}\n")
    sys.stderr.flush()
    for number in (signal.SIGALRM, signal.SIGKILL):
        if os.getppid() == parent:
            os.kill(parent, number)
        if over.wait(_ENDS):
            return


def _listening(cluster: Cluster) -> socket.socket:
    """Opens a socket at this worker's port, on all interfaces as TensorFlow does."""
    port = int(cluster.addresses[cluster.worker].rpartition(":")[2])
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        own = socket.create_server(("", port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise taken_port(cluster, error) from error
    own.setblocking(False)
    return own


def _accept(own: socket.socket) -> None:
    """Accepts and closes all pending connections: else the backlog would fill up."""
    with contextlib.suppress(BlockingIOError):
        while True:
            own.accept()[0].close()
