"""Collective operations of the workers of a run: gather, barrier, each one's share of a batch.

Every worker must call these functions in the same order; without others, they return at once.
"""

import signal
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import tensorflow as tf

from kbert.options.configuration import MULTI_WORKER
from kbert.training.distributed.tf_config import read_cluster


def all_gather(values: Sequence[int]) -> list[list[int]]:
    """Gathers a list of numbers from every worker; each waits for all.

    Args:
        values: This worker's numbers, as many as every other worker's.

    Returns:
        The numbers of each worker, by worker; without others, a list with this worker's.
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

    A scheduler signals workers one after the other. If one stopped alone, the others would hang in
    the middle of a step that waits for it.

    Args:
        received: The name of the signal that this worker has received, or None.
    """
    if not _has_others(tf.distribute.get_strategy()):
        return received
    number = 0 if received is None else signal.Signals[received].value
    highest = max(max(row) for row in all_gather([number]))
    return signal.Signals(highest).name if highest else None


def barrier() -> None:
    """Waits until every worker has reached this barrier."""
    all_gather([0])


def _has_others(current: tf.distribute.Strategy) -> bool:
    return isinstance(current, tf.distribute.MultiWorkerMirroredStrategy)


def _summed(made: tf.distribute.Strategy, value: tf.Tensor) -> tf.Tensor:
    """Returns the sum over the replicas of all workers."""
    return made.experimental_local_results(_sum_function(made)(value))[0]


@lru_cache(maxsize=None)
def _sum_function(made: tf.distribute.Strategy) -> Any:
    """Returns the cached function, with a graph for each shape: workers gather after each step."""

    def of_replica(value: tf.Tensor) -> tf.Tensor:
        # The sum is placed on the devices of its operand: an argument as such has none.
        own = tf.identity(value)
        return tf.distribute.get_replica_context().all_reduce("SUM", own)

    @tf.function
    def every(value: tf.Tensor) -> Any:
        return made.run(of_replica, (value,))

    return every


def own_share(config: Any) -> dict[str, int]:
    """Returns this worker's share of a stream of examples.

    Args:
        config: The run's configuration, with `strategy` and `batch_size`.

    Returns:
        The arguments `batch_size`, `worker` and `workers` of
        `kbert.data.pretraining.stream.ExampleStream`.
    """
    if config.strategy != MULTI_WORKER:
        return {"batch_size": config.batch_size}
    cluster = read_cluster()
    workers = len(cluster.addresses)
    share = {"worker": cluster.worker, "workers": workers}
    return {"batch_size": config.batch_size // workers, **share}
