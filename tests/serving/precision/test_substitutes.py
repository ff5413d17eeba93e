"""What an export computes with instead of a model's own variables."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import Linear
from kbert.serving.precision.small_weights import rounded_to_int8
from kbert.serving.precision.substitutes import WeightSubstitutes


class Small(keras.Model):
    """A table, whose rows a layer reads within a loop; and a layer that nobody asks."""

    def __init__(self) -> None:
        super().__init__()
        self.table = TokenEmbedding(64, 64)
        self.linear = Linear(64)
        self.unused = Linear(64)
        self.table.build()
        self.linear.build((None, 64))
        self.unused.build((None, 64))

    def read(self, ids: Any) -> Any:
        """Twice through the layer, and once against the whole table."""
        start = (tf.constant(0), self.table(ids))
        _, found = tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, self.linear(x)), start)
        return tf.matmul(found, tf.transpose(self.table.embeddings))


def expected(table: np.ndarray, kernel: np.ndarray, bias: np.ndarray, ids: list[int]) -> Any:
    """The same in NumPy."""
    found = table[ids]
    for _ in range(2):
        found = found @ kernel + bias
    return found @ table.T


def variables_of(function: Any) -> set[str]:
    """What an export of a graph would store."""
    return {variable.ref() for variable in function.variables}


def test_a_shared_variable_is_read_instead():
    one, other = Small(), Small()
    substitutes = WeightSubstitutes([one, other])
    for mine, kept in zip(other.weights, one.weights):
        substitutes.share(mine, kept)
    graph = tf.function(substitutes.function(other.read), autograph=False)
    traced = graph.get_concrete_function(tf.TensorSpec((None,), tf.int32))
    table, kernel, bias = (np.asarray(v) for v in (*one.table.weights, *one.linear.weights))
    np.testing.assert_allclose(
        traced(tf.constant([3, 60])), expected(table, kernel, bias, [3, 60]), atol=1e-5
    )
    used = [one.table.embeddings, one.linear.kernel, one.linear.bias]
    assert variables_of(traced) == {variable.value.ref() for variable in used}
    # Outside it is itself again.
    own = [np.asarray(v) for v in (*other.table.weights, *other.linear.weights)]
    np.testing.assert_allclose(
        other.read(tf.constant([3])), expected(*own, [3]), atol=1e-5
    )


def test_int8_stands_for_what_is_large():
    model = Small()
    substitutes = WeightSubstitutes([model])
    assert substitutes.stores_int8 is False and substitutes.function(len) is len
    substitutes.store_small("int8")
    assert substitutes.stores_int8 is True
    graph = tf.function(substitutes.function(model.read), autograph=False)
    traced = graph.get_concrete_function(tf.TensorSpec((None,), tf.int32))
    table = rounded_to_int8(np.asarray(model.table.embeddings), "embeddings")
    kernel = rounded_to_int8(np.asarray(model.linear.kernel), "kernel")
    found = traced(tf.constant([0, 63]))
    bias = np.asarray(model.linear.bias)
    np.testing.assert_allclose(found, expected(table, kernel, bias, [0, 63]), atol=1e-5)
    # Codes and scales of two matrices, and a bias: not the layer that nobody asks.
    assert sorted(v.dtype.name for v in traced.variables) == ["float32"] * 3 + ["int8"] * 2
    # Floats are made once, outside the loop.
    bodies = [f for f in traced.graph.as_graph_def().library.function if "body" in f.signature.name]
    assert bodies and not any(n.op == "Cast" for f in bodies for n in f.node_def)
    assert "look_up" not in vars(model.table)


def test_halves_stand_for_what_they_hold_exactly():
    model = Small()
    model.table.embeddings.assign(np.asarray(model.table.embeddings).astype("float16"))
    ids = tf.constant([0, 63])
    before = tf.function(model.read, autograph=False)(ids)
    substitutes = WeightSubstitutes([model])
    substitutes.store_small(None)
    assert substitutes.stores_int8 is False
    graph = tf.function(substitutes.function(model.read), autograph=False)
    traced = graph.get_concrete_function(tf.TensorSpec((None,), tf.int32))
    np.testing.assert_array_equal(traced(ids), before)
    # The kernel, whose numbers are not all such, stays; so does the bias, which is small.
    assert sorted(v.dtype.name for v in traced.variables) == ["float16"] + ["float32"] * 2
