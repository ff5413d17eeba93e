"""Whether the other workers of a cluster are there, asked again and again by a thread."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kbert.training.distributed.tf_config import Cluster

# The exit code of a process whose peers are gone; "try again later" in sysexits.h.
LOST = 75
EVERY, _ANSWER = 5.0, 5.0
# Failures in a row that count; a single one may be a full queue.
_MOST_FAILURES = 3
# Before a worker has ever answered it may still be starting.
START = 300.0
# What the training itself gets to notice, and to end in order.
GRACE = 15


class LostWorker(ConnectionError):
    """Another worker does not answer any more; TensorFlow needs a new process to go on."""


def end_within(seconds: int) -> None:
    """Lets the system end this process after a while, whatever it waits for then.

    Without the others TensorFlow may never come to the end of its own clearing up.

    Args:
        seconds: How long it has to end by itself.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)


def lost(cluster: Cluster, workers: Sequence[int], reason: str) -> str:
    """Says that workers are gone, and what to do.

    Args:
        cluster: The cluster.
        workers: Their numbers; none where it is not known which.
        reason: What was seen.
    """
    named = ", ".join(f"worker {worker} ({cluster.addresses[worker]})" for worker in workers)
    return (
        f"all {len(cluster.addresses)} workers must answer as long as a training goes on. "
        f"Received: {reason} from {named or 'one of them'}. Worker {cluster.worker} stops too; "
        "start all of them again, and a run that saves states goes on from the last one"
    )


def answers(address: str, seconds: float = _ANSWER) -> bool:
    """Tells whether a process listens at an address.

    Args:
        address: "host:port".
        seconds: How long to wait for it.
    """
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

    TensorFlow too finds out, and most often says so within seconds. But what waits for a worker
    that never came, or for one whose machine is gone, might wait for an hour.

    Args:
        cluster: The cluster.
        every: Seconds between two questions.
        start: Seconds that a worker has to answer for the first time.
        grace: Seconds that the training has to end by itself.
    """
    over = threading.Event()

    def watch() -> None:
        gone = first_gone(cluster, over, every, start)
        if gone is None or over.wait(grace):
            return
        sys.stderr.write(f"Error: {lost(cluster, gone, 'no answer')}\n")
        sys.stderr.flush()
        os._exit(LOST)  # the main thread may wait for them without end

    thread = threading.Thread(target=watch, name="peers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()


def first_gone(
    cluster: Cluster, over: threading.Event, every: float, start: float
) -> list[int] | None:
    """Waits until workers are gone.

    Args:
        cluster: The cluster.
        over: Is set when nobody is waited for any more.
        every: As `watched`.
        start: As `watched`.

    Returns:
        The numbers of those that are gone; None where it is over before.
    """
    peers = [i for i in range(len(cluster.addresses)) if i != cluster.worker]
    begin = time.monotonic()
    seen: set[int] = set()
    failures = dict.fromkeys(peers, 0)
    while not over.wait(every):
        for peer in peers:
            if answers(cluster.addresses[peer]):
                seen.add(peer)
                failures[peer] = 0
            else:
                failures[peer] += 1
        late = time.monotonic() - begin > start
        gone = [p for p in peers if failures[p] >= _MOST_FAILURES and (p in seen or late)]
        if gone:
            return gone
    return None
