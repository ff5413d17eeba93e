"""The parts of an update that only TensorFlow has; the update itself is in test_adamw.py."""

import keras
import numpy as np
import tensorflow as tf

from kbert.optimization.adamw import (
    assign_own,
    native_variable,
    summed_over_replicas,
    with_each_row_once,
)


def test_parts_of_a_row_add_up():
    values = tf.constant([[1.0, 2.0], [10.0, 20.0], [3.0, 4.0]])
    listed = tf.IndexedSlices(values, tf.constant([4, 0, 4]), tf.constant([5, 2]))
    once = with_each_row_once(listed)
    # By hand: rows 4 and 0, in the order in which they come.
    np.testing.assert_array_equal(once.indices, [4, 0])
    np.testing.assert_array_equal(once.values, [[4.0, 6.0], [10.0, 20.0]])
    assert with_each_row_once(values) is values


def test_one_replica_has_the_gradients_of_the_batch():
    gradients = [tf.constant(1.0), None]
    assert summed_over_replicas(gradients, None) is gradients


def test_a_variable_is_assigned_by_its_own_name_or_keras_s():
    of_keras = keras.Variable([1.0, 2.0])
    of_tensorflow = tf.Variable([1.0, 2.0], dtype=tf.float64)
    assert native_variable(of_keras) is of_keras.value
    assert native_variable(of_tensorflow) is of_tensorflow
    for variable in (of_keras, of_tensorflow):
        assign_own(variable, tf.constant([3.0, 5.0]))
        np.testing.assert_array_equal(np.asarray(variable), [3.0, 5.0])
