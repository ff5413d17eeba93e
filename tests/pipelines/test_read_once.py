"""Weights that are read before a loop: what the loop becomes, and what is computed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines.read_once import weights_read_once


def three_times(model: keras.Model, x: tf.Tensor) -> tf.Tensor:
    return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, model(x)), (0, x))[1]


@pytest.fixture
def model() -> keras.Model:
    """x -> 2 x + 1."""
    layer = keras.layers.Dense(1, kernel_initializer=keras.initializers.Constant(2.0))
    model = keras.Sequential([keras.Input((1,)), layer])
    layer.bias.assign([1.0])
    return model


def loops_of(graph: tf.types.experimental.ConcreteFunction) -> list[str]:
    return [op.type for op in graph.graph.get_operations() if op.type.endswith("While")]


def test_a_loop_has_no_effects_and_computes_the_same(model: keras.Model) -> None:
    @tf.function(autograph=False)
    def once(x: tf.Tensor) -> tf.Tensor:
        with weights_read_once(model):
            return three_times(model, x)

    each_time = tf.function(lambda x: three_times(model, x), autograph=False)
    x = tf.constant([[1.0], [-1.0]])
    # By hand: 1, 3, 7, 15; and -1 is a fixed point.
    np.testing.assert_array_equal(once(x), [[15.0], [-1.0]])
    np.testing.assert_array_equal(each_time(x), [[15.0], [-1.0]])
    assert loops_of(once.get_concrete_function(x)) == ["StatelessWhile"]
    assert loops_of(each_time.get_concrete_function(x)) == ["While"]
    # They are read when the graph runs, not when it is made.
    model.layers[0].bias.assign([0.0])
    np.testing.assert_array_equal(once(x), [[8.0], [-8.0]])


def test_in_few_bits() -> None:
    half = keras.layers.Dense(1, dtype="mixed_bfloat16")
    half.build((None, 1))
    half.kernel.assign([[1.0 + 2**-12]])  # 1 in bfloat16
    with weights_read_once(half):
        found = half(tf.constant([[3.0]]))
    assert found.dtype == tf.bfloat16
    assert float(found[0, 0]) == 3.0
