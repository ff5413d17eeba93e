"""Thread that polls whether the other workers of a cluster are alive."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from kbert.training.distributed.tf_config import Cluster

# The exit code of a process whose peers are gone; EX_TEMPFAIL of sysexits.h.
LOST = 75
EVERY, _ANSWER = 5.0, 5.0
# Consecutive failures that count; a single one may be a full backlog.
_MOST_FAILURES = 3
# Before its first answer a worker may still be starting.
START = 300.0
# Seconds that the training has to notice by itself, and to end in order.
GRACE = 15


class LostWorker(ConnectionError):
    """Raised when another worker does not answer; TensorFlow needs a new process to resume."""


def end_within(seconds: int) -> None:
    """Lets the system end this process after some time, whatever it waits for then.

    Without the others TensorFlow may never finish its own cleanup.

    Args:
        seconds: How long it has to end by itself.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)


def lost(cluster: Cluster, workers: Sequence[int], reason: str) -> str:
    """Returns the message that workers are gone, and what to do.

    Args:
        cluster: The cluster.
        workers: Their indices; empty if unknown.
        reason: The observed failure.
    """
    named = ", ".join(f"worker {worker} ({cluster.addresses[worker]})" for worker in workers)
    return (
        f"all {len(cluster.addresses)} workers must answer as long as a training goes on. "
        f"Received: {reason} from {named or 'one of them'}. Worker {cluster.worker} stops too; "
        "start all of them again, and a run that saves states goes on from the last one"
    )


def answers(address: str, seconds: float = _ANSWER) -> bool:
    """Returns whether a process listens at an address.

    Args:
        address: "host:port".
        seconds: Timeout of the connection.
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

    TensorFlow notices too, and mostly raises an error within seconds. But it might wait an hour
    for a worker that never appeared, or whose machine is gone.

    Args:
        cluster: The cluster.
        every: Seconds between two polls.
        start: Seconds that a worker has for its first answer.
        grace: Seconds that the training has to end by itself.
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
    """Waits until workers are gone.

    Args:
        cluster: The cluster.
        over: Event that ends the waiting.
        every: Seconds between two polls.
        start: Seconds that a worker has for its first answer.

    Returns:
        The indices of workers that are gone; None if `over` was set before.
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
