"""Start of a worker: it waits for the others, and can be ended meanwhile."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from kbert.training.distributed.stop_signals import handled_by
from kbert.training.distributed.tf_config import VARIABLE, Cluster, read_cluster, worker_config
from kbert.training.distributed.worker_watch import (
    EVERY,
    START,
    LostWorker,
    answers,
    first_gone,
    lost,
)

_SOON = 0.5
# SIGINT ends a process at once unless it is handled; with SIGALRM the guard ends it.
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGALRM)
_PROGRAM = "from kbert.training.distributed.worker_rendezvous import guard; guard()"
# Seconds that a process has to end after a signal, before it is killed.
_ENDS = 5.0


def wait_for_others(cluster: Cluster, start: float = START) -> None:
    """Waits until a process has listened at the address of every other worker.

    TensorFlow would wait too, but in one call in which neither threads nor signal handlers of
    Python run. So it is called when all are there: each worker listens at its own address until it
    has seen the others, and then TensorFlow does.

    Args:
        cluster: The cluster.
        start: Seconds that the others have to appear.

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
    """Returns the error for a port of this worker that is in use.

    Args:
        cluster: The cluster.
        error: The original error.
    """
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

    Args:
        cluster: The cluster.
        every: Seconds between two polls.
        start: Seconds that a worker has for its first answer.
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
