"""What a loop reads of a model's weights: the same numbers, by fewer variables."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.linear import Linear
from kbert.layers.residual import LayerNorm
from kbert.pipelines.inference import captured_weights
from kbert.tasks.translation.loop_weights import loop_weights

DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(2, 4)).astype("float32")


def model_of(dtype: str) -> keras.Model:
    """Two dense layers and a LayerNorm, with random weights, biases too."""
    layers = [Linear(4, dtype=dtype), LayerNorm(dtype=dtype), Linear(4, dtype=dtype)]
    model = keras.Sequential([keras.Input((4,)), *layers])
    model.dtype_policy = keras.DTypePolicy(dtype)
    model.set_weights([DRAW.normal(size=w.shape).astype("float32") for w in model.get_weights()])
    return model


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_a_loop_computes_the_same(dtype):
    model = model_of(dtype)

    def looped(scope):
        @tf.function(autograph=False)
        def twice(x):
            with scope:
                return tf.while_loop(lambda y, n: n < 2, lambda y, n: (model(y), n + 1), (x, 0))[0]

        return tf.cast(twice(tf.cast(X, model.compute_dtype)), tf.float32)

    wanted, found = looped(captured_weights()), looped(loop_weights(model))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_vectors_of_one_width_are_one_variable_of_the_loop():
    model = model_of("float32")

    @tf.function(autograph=False)
    def looped(x):
        with loop_weights(model):
            return tf.while_loop(lambda y, n: n < 2, lambda y, n: (model(y), n + 1), (x, 0))[0]

    graph = looped.get_concrete_function(tf.constant(X)).graph
    (loop,) = [op for op in graph.get_operations() if op.type in ("While", "StatelessWhile")]
    # Two matrices, and one of the four vectors; state, counter, and two numbers of TensorFlow's.
    assert len(loop.inputs) == 2 + 1 + 4
    assert loop.type == "StatelessWhile"  # no variable is read within


def test_outside_of_a_graph_nothing_changes():
    with loop_weights(model := model_of("float32")):
        assert np.isfinite(model(X)).all()
