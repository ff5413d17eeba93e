"""Sums over replicas where there is one; for two see `test_replication.py`."""

import tensorflow as tf

from kbert.optimization.losses import over_replicas, replica_context, whole_batch_loss


def test_on_one_device_nothing_changes():
    assert replica_context() is None
    counted, rows = tf.constant(3.0), tf.constant(2)
    assert over_replicas(counted, rows) == [counted, rows]
    loss = tf.constant(0.5)
    assert whole_batch_loss(loss, 4) is loss


def test_outside_of_every_replica_nothing_changes():
    # Keras asks for shapes there, where nothing can be summed up.
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        assert tf.distribute.get_replica_context() is None
        assert replica_context() is None
