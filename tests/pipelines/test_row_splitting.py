"""Batches divided by rows; for their losses see `test_replication.py`."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.batches.dataset import unsharded
from kbert.pipelines.row_splitting import (
    RowSplitting,
    check_divisible,
    distributed_rows,
)


class Worker:
    """A strategy as `distributed_rows` asks it: one of two workers with two replicas each."""

    def __init__(self, number):
        self.context = tf.distribute.InputContext(2, number, 4)

    def distribute_datasets_from_function(self, function):
        return function(self.context)


def batches(*sizes):
    rows = np.arange(sum(sizes))
    cut = np.split(rows, np.cumsum(sizes)[:-1])
    made = tf.data.Dataset.from_generator(
        lambda: ((row[:, None], row) for row in cut),
        output_signature=(tf.TensorSpec((None, 1), tf.int64), tf.TensorSpec((None,), tf.int64)),
    )
    return made


def rows_of(dataset):
    parts = [(x.numpy()[:, 0].tolist(), y.numpy().tolist()) for x, y in dataset]
    assert all(x == y for x, y in parts)
    return [x for x, _ in parts]


def test_each_worker_takes_its_rows_of_every_batch():
    # By hand: 10 rows as 2 + 3 + 2 + 3, 3 rows as 0 + 1 + 1 + 1, 1 row for the last replica.
    first = rows_of(distributed_rows(Worker(0), batches(10, 3, 1)))
    second = rows_of(distributed_rows(Worker(1), batches(10, 3, 1)))
    assert first == [[0, 1], [2, 3, 4], [], [10], [], []]
    assert second == [[5, 6], [7, 8, 9], [11], [12], [], [13]]


def test_a_worker_s_own_share_is_divided_among_its_replicas():
    assert rows_of(distributed_rows(Worker(1), unsharded(batches(4, 3)))) == [
        *([0, 1], [2, 3]),
        *([4], [5, 6]),
    ]


def test_known_sizes_stay_known_and_must_be_divisible():
    endless = tf.data.Dataset.from_tensors({"x": tf.zeros((8, 3))}).repeat()
    divided = distributed_rows(Worker(0), endless)
    assert divided.element_spec["x"].shape == (2, 3)
    assert divided.cardinality() == tf.data.INFINITE_CARDINALITY
    with pytest.raises(ValueError, match="`batch_size` must be divisible by 4, .* batch_size=6"):
        distributed_rows(Worker(0), tf.data.Dataset.from_tensors(tf.zeros((6, 3))))
    check_divisible("batch_size", None, 4)


def test_a_strategy_keeps_all_else():
    strategy = tf.distribute.get_strategy()
    seen = RowSplitting(strategy, everywhere=True)
    assert seen.num_replicas_in_sync == 1 and seen.extended is strategy.extended
    dataset = batches(3)
    assert seen.experimental_distribute_dataset(dataset) is dataset
