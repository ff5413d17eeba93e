"""Gradients that a function writes out, and graphs without them."""

import numpy as np
import tensorflow as tf
from keras import ops

from kbert.layers.linear import own_gradient, without_gradients


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
