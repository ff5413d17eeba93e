"""Weights that are read before a loop: what the loop becomes, and what is computed."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines.inference import CapturedWeights, captured_weights


class Model(keras.Model):
    """x -> 2 x + 1, three times; and a layer that nobody asks."""

    def __init__(self, dtype: str = "float32") -> None:
        super().__init__()
        two = keras.initializers.Constant(2.0)
        self.layer = keras.layers.Dense(1, kernel_initializer=two, dtype=dtype)
        self.unused = keras.layers.Dense(1)
        for layer in (self.layer, self.unused):
            layer.build((None, 1))
        self.layer.bias.assign([1.0])

    def thrice(self, x: tf.Tensor) -> tf.Tensor:
        start = (0, tf.cast(x, self.layer.compute_dtype))
        return tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, self.layer(x)), start)[1]

    def thrice_read_once(self, x: tf.Tensor) -> tf.Tensor:
        with captured_weights():
            return self.thrice(x)


X = tf.constant([[1.0], [-1.0]])


def traced(function: object) -> tf.types.experimental.ConcreteFunction:
    return tf.function(function, autograph=False).get_concrete_function(tf.TensorSpec((None, 1)))


def loops_of(graph: tf.types.experimental.ConcreteFunction) -> list[str]:
    return [op.type for op in graph.graph.get_operations() if op.type.endswith("While")]


def test_a_loop_has_no_effects_and_computes_the_same() -> None:
    model = Model()
    once, each_time = traced(model.thrice_read_once), traced(model.thrice)
    assert (loops_of(once), loops_of(each_time)) == (["StatelessWhile"], ["While"])
    # By hand: 1, 3, 7, 15; and -1 is a fixed point.
    for function in (once, each_time, model.thrice_read_once):
        np.testing.assert_array_equal(function(X), [[15.0], [-1.0]])
    # What nobody asks is not read, and so not stored by an export.
    assert {v.ref() for v in once.variables} == {v.value.ref() for v in model.layer.weights}
    # They are read when the graph runs, not when it is made.
    model.layer.bias.assign([0.0])
    np.testing.assert_array_equal(once(X), [[8.0], [-8.0]])


class Times(keras.layers.Layer):
    """x times a variable."""

    def __init__(self, variable: keras.Variable, dtype: str) -> None:
        super().__init__(dtype=dtype)
        self.variable = variable

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return keras.ops.multiply(x, self.variable)


def test_a_layer_of_few_bits_and_one_of_many_share_a_weight() -> None:
    variable = keras.Variable([1.0 + 2**-12])  # 1 in bfloat16
    few, many = Times(variable, "mixed_bfloat16"), Times(variable, "float32")

    def both(x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        with captured_weights():
            return few(x), many(x)

    small, large = traced(both)(tf.constant([[4096.0]]))
    assert (float(small[0, 0]), float(large[0, 0])) == (4096.0, 4097.0)


@pytest.mark.parametrize("stands_for_all", [True, False])
def test_what_stands_for_a_variable_around_it_is_computed_with(stands_for_all: bool) -> None:
    model = Model()

    def value(variable: keras.Variable) -> tf.Tensor | None:
        if variable is model.layer.bias or stands_for_all:
            return tf.zeros(variable.shape)
        return None

    def function(x: tf.Tensor) -> tf.Tensor:
        with CapturedWeights(value):
            return model.thrice_read_once(x)

    graph = traced(function)
    expected = [[0.0], [0.0]] if stands_for_all else [[8.0], [-8.0]]
    np.testing.assert_array_equal(graph(X), expected)
    assert loops_of(graph) == ["StatelessWhile"]
    assert len(graph.variables) == (0 if stands_for_all else 1)
