"""Gradients that a function writes out, and graphs without them."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops
from tensorflow.python.framework import ops as tf_ops
from tensorflow.python.framework.ops import gradient_registry

from kbert.gradients import gradients_forgotten, own_gradient, without_gradients
from tests.small_pipelines import small_classifier


@own_gradient
def doubled(x):
    """Twice x, whose gradient says seven, so that it can be told from TensorFlow's own."""
    return x * 2.0, lambda upstream: upstream * 7.0


def gradient_of(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return y, tape.gradient(y, x)


def test_the_gradient_is_the_one_written_out_where_it_is_wanted():
    x = tf.constant([3.0])
    for around, expected in ((None, 7.0), (without_gradients, 2.0), (None, 7.0)):
        if around is None:
            y, found = gradient_of(doubled, x)
        else:
            with around():
                y, found = gradient_of(doubled, x)
        np.testing.assert_array_equal(ops.convert_to_numpy(y), [6.0])
        np.testing.assert_array_equal(ops.convert_to_numpy(found), [expected])


def test_it_is_wanted_again_after_an_error():
    try:
        with without_gradients():
            raise KeyError("anything")
    except KeyError:
        pass
    assert gradient_of(doubled, tf.constant([1.0]))[1].numpy() == 7.0


def test_a_graph_with_a_gradient_is_freed():
    """TensorFlow alone keeps such a graph, and all that it holds, to the end of the process."""

    def repeated(x):
        return tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, doubled(y)), (0, x))[1]

    function = tf.function(lambda x: gradient_of(repeated, x), autograph=False)
    y, found = function(tf.constant([3.0]))
    assert y.numpy() == 12.0 and found.numpy() == 49.0
    graph = weakref.ref(function.get_concrete_function(tf.constant([3.0])).graph)
    gradients = len(gradient_registry.list())
    assert graph() is not None
    del function
    gc.collect()
    assert graph() is None and len(gradient_registry.list()) < gradients


def test_training_leaves_nothing_in_the_table_that_would_hold_its_graph():
    known = set(gradient_registry.list())
    model = small_classifier()
    model.compile(keras.optimizers.SGD(0.1))
    model.fit(["a film", "no film"], ["no", "yes"], verbose=0)
    assert set(gradient_registry.list()) == known


def test_a_step_that_fails_forgets_too_and_only_what_is_its_own():
    def registered() -> str:
        name = f"CustomGradient-test-{tf_ops.uid()}"
        tf_ops.RegisterGradient(name)(lambda op, *gradients: gradients)
        return name

    others = registered()
    with pytest.raises(KeyError, match="lost"), gradients_forgotten():
        inside = registered()
        raise KeyError("lost")
    assert others in gradient_registry.list()
    assert inside not in gradient_registry.list()
    del gradient_registry._registry[others]
