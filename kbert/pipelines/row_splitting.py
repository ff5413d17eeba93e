"""Batches divided by rows among the replicas of a strategy."""

from typing import Any

import tensorflow as tf

from kbert.data.batches.dataset import read_ahead


class RowSplitting:
    """A strategy for Keras' `fit` that gives each replica its rows of every batch.

    TensorFlow's own division fills the batches of the replicas from several batches, which here
    have different widths, and takes their size from a dataset's specification, which rarely has it.
    With `everywhere`, each worker gets all data, and only one replica computes.
    """

    def __init__(self, strategy: tf.distribute.Strategy, everywhere: bool = False) -> None:
        self._strategy = strategy
        self._everywhere = everywhere

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the strategy."""
        return getattr(self._strategy, name)

    def experimental_distribute_dataset(self, dataset: tf.data.Dataset) -> Any:
        """Returns a dataset of the replicas' parts of batches; see `distributed_rows`."""
        return dataset if self._everywhere else distributed_rows(self._strategy, dataset)


def distributed_rows(strategy: tf.distribute.Strategy, dataset: tf.data.Dataset) -> Any:
    """Gives each replica its rows of every batch: the first replica the first ones, and so on.

    The parts are as equal as whole rows can be; of a batch with fewer rows than replicas some get
    none. Each of several workers takes its rows of the same batches, unless the dataset is from
    `kbert.data.batches.dataset.unsharded`: then it is the worker's own shard, and is divided among
    its replicas. Batches are nested structures of dense tensors (B, ...); if B is static, the
    replicas must be able to share it equally.
    """
    policy = dataset.options().experimental_distribute.auto_shard_policy
    is_own_share = policy == tf.data.experimental.AutoShardPolicy.OFF
    known = tf.nest.flatten(dataset.element_spec)[0].shape[0]
    is_endless = dataset.cardinality() == tf.data.INFINITE_CARDINALITY

    def shares(context: tf.distribute.InputContext) -> tf.data.Dataset:
        own = context.num_replicas_in_sync // context.num_input_pipelines
        parts = own if is_own_share else context.num_replicas_in_sync
        first = 0 if is_own_share else own * context.input_pipeline_id
        check_divisible("batch_size", known, parts)
        numbers = range(first, first + own)
        divided = dataset.flat_map(lambda *batch: _parts(batch, known, numbers, parts))
        if is_endless:
            endless = tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
            divided = divided.apply(endless)
        return read_ahead(divided)

    return strategy.distribute_datasets_from_function(shares)


def check_divisible(name: str, rows: int | None, replicas: int) -> None:
    """Raises a ValueError if replicas cannot share the rows of a batch equally.

    `rows` is None where batches have different numbers of rows; `name` is theirs, for the error.
    """
    if rows is not None and rows % replicas:
        raise ValueError(
            f"`{name}` must be divisible by {replicas}, the replicas that share a batch. "
            f"Received: {name}={rows}"
        )


def _parts(batch: Any, known: int | None, numbers: range, parts: int) -> tf.data.Dataset:
    """Returns a dataset of the parts of a batch with the given numbers."""
    batch = batch if len(batch) > 1 else batch[0]
    rows = tf.shape(tf.nest.flatten(batch)[0], tf.int64)[0]
    size = None if known is None else known // parts

    @tf.autograph.experimental.do_not_convert
    def part(number: tf.Tensor) -> Any:
        begin, end = rows * number // parts, rows * (number + 1) // parts
        return tf.nest.map_structure(
            lambda x: tf.ensure_shape(x[begin:end], (size, *x.shape[1:])), batch
        )

    return tf.data.Dataset.range(numbers.start, numbers.stop).map(part)
