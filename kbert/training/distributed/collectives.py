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
    """Gathers as many numbers from every worker, a list each, by worker; each waits for all.

    Without others, the only list is this worker's.
    """
    current = tf.distribute.get_strategy()
    if not _has_others(current):
        return [list(values)]
    cluster = read_cluster()
    rows = [[0] * len(values) for _ in cluster.addresses]
    rows[cluster.worker] = list(values)
    local = len(current.extended.worker_devices)
    summed = _sum_function(current)(tf.constant(rows, tf.int64))
    sums = current.experimental_local_results(summed)[0] // local
    return [[int(value) for value in row] for row in sums.numpy()]


def any_signal(received: str | None) -> str | None:
    """Returns the name of the signal that any worker has received, or None.

    A scheduler signals workers one after the other. If one stopped alone, the others would hang in
    the middle of a step that waits for it.
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


@lru_cache(maxsize=None)
def _sum_function(made: tf.distribute.Strategy) -> Any:
    """Returns the sum over all replicas, with a graph for each shape: workers gather each step."""

    def of_replica(value: tf.Tensor) -> tf.Tensor:
        # The sum is placed on the devices of its operand: an argument as such has none.
        own = tf.identity(value)
        return tf.distribute.get_replica_context().all_reduce("SUM", own)

    @tf.function
    def every(value: tf.Tensor) -> Any:
        return made.run(of_replica, (value,))

    return every


def own_share(config: Any) -> dict[str, int]:
    """Returns this worker's share of a stream of examples, of a run's configuration.

    They are arguments of `kbert.data.pretraining.stream.ExampleStream`: `batch_size`, and where
    there are several workers `worker` and `workers`.
    """
    if config.strategy != MULTI_WORKER:
        return {"batch_size": config.batch_size}
    cluster = read_cluster()
    workers = len(cluster.addresses)
    size = config.batch_size // workers
    return {"batch_size": size, "worker": cluster.worker, "workers": workers}
