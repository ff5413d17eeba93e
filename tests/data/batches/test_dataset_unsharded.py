"""The option that keeps every worker's dataset whole."""

import tensorflow as tf

from kbert.data.batches.dataset import unsharded


def test_policy_is_off():
    dataset = tf.data.Dataset.range(3).batch(2)
    found = unsharded(dataset).options().experimental_distribute.auto_shard_policy
    assert found == tf.data.experimental.AutoShardPolicy.OFF
    before = dataset.options().experimental_distribute.auto_shard_policy
    assert before == tf.data.experimental.AutoShardPolicy.AUTO
    assert [batch.tolist() for batch in unsharded(dataset).as_numpy_iterator()] == [[0, 1], [2]]
