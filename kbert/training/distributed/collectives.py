"""Communication of the workers of a run: what each knows becomes known to all.

Every worker must call these functions in the same order; alone, they return at once.
"""

import signal
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import tensorflow as tf

from kbert.training.distributed.tf_config import read_cluster


def all_gather(values: Sequence[int]) -> list[list[int]]:
    """Gathers a list of numbers from every worker; each waits for all.

    Args:
        values: This worker's numbers, as many as every other worker gives.

    Returns:
        The numbers of each worker, by worker; alone, a list of the own ones.
    """
    current = tf.distribute.get_strategy()
    if not _has_others(current):
        return [list(values)]
    cluster = read_cluster()
    rows = [[0] * len(values) for _ in cluster.addresses]
    rows[cluster.worker] = list(values)
    local = len(current.extended.worker_devices)
    found = _summed(current, tf.constant(rows, tf.int64)) // local
    return [[int(value) for value in row] for row in found.numpy()]


def any_signal(received: str | None) -> str | None:
    """Returns the signal that any worker has received.

    A scheduler asks workers one after the other. One that stopped by itself would leave the others
    in the middle of a step that waits for it.

    Args:
        received: The name of the signal that this worker has received, or None.
    """
    if not _has_others(tf.distribute.get_strategy()):
        return received
    number = 0 if received is None else signal.Signals[received].value
    highest = max(max(row) for row in all_gather([number]))
    return signal.Signals(highest).name if highest else None


def barrier() -> None:
    """Waits until every worker has come this far."""
    all_gather([0])


def _has_others(current: tf.distribute.Strategy) -> bool:
    return isinstance(current, tf.distribute.MultiWorkerMirroredStrategy)


def _summed(made: tf.distribute.Strategy, value: tf.Tensor) -> tf.Tensor:
    """The sum over the replicas of all workers."""
    return made.experimental_local_results(_sum_function(made)(value))[0]


@lru_cache(maxsize=None)
def _sum_function(made: tf.distribute.Strategy) -> Any:
    """A graph for each shape, kept: workers gather after each step."""

    def of_replica(value: tf.Tensor) -> tf.Tensor:
        # The sum goes to the devices of what is added: an argument as such has none.
        own = tf.identity(value)
        return tf.distribute.get_replica_context().all_reduce("SUM", own)

    @tf.function
    def every(value: tf.Tensor) -> Any:
        return made.run(of_replica, (value,))

    return every
