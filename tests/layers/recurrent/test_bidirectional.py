"""The stack of bidirectional layers beside Keras' layers, row by row without padding."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.recurrent.bidirectional import Bidirectional
from tests.check_layer import check_layer

INPUTS = np.random.default_rng(1).normal(size=(3, 5, 3)).astype("float32")
LENGTHS = (5, 2, 1)
MASK = np.arange(5) < np.array(LENGTHS)[:, None]


def random_layer(**arguments):
    layer = Bidirectional(4, **arguments)
    layer.build(INPUTS.shape)
    for i, weight in enumerate(v for v in layer.weights if "seed_generator" not in v.path):
        weight.assign(np.random.default_rng(i).normal(size=weight.shape))
    return layer


def keras_outputs(layer, row):
    """One row without padding, by `keras.layers.LSTM`."""
    states = row[None]
    for pair in layer.directions:
        found = []
        for ours in pair:
            other = keras.layers.LSTM(4, return_sequences=True, go_backwards=ours.backwards)
            other.build(states.shape)
            other.set_weights([w.numpy() for w in (ours.kernel, ours.recurrent_kernel, ours.bias)])
            outputs = other(states).numpy()
            found.append(outputs[:, ::-1] if ours.backwards else outputs)
        states = np.concatenate(found, axis=-1)
    return states[0]


@pytest.mark.parametrize("num_layers", [1, 2])
def test_numbers(num_layers):
    layer = random_layer(num_layers=num_layers)
    found = np.asarray(layer(INPUTS, MASK))
    assert found.shape == (3, 5, 8) == layer.compute_output_shape(INPUTS.shape)
    for row, length, outputs in zip(INPUTS, LENGTHS, found):
        expected = keras_outputs(layer, row[:length])
        np.testing.assert_allclose(outputs[:length], expected, atol=1e-5)


def test_padding_is_not_read():
    layer = random_layer(num_layers=2)
    other = np.where(MASK[..., None], INPUTS, np.float32(7.0))
    one, two = (np.asarray(layer(x, MASK)) for x in (INPUTS, other))
    np.testing.assert_allclose(one[MASK], two[MASK], atol=1e-6)


def test_dropout_follows_each_layer_in_training():
    layer = random_layer(num_layers=2, dropout=0.5)
    quiet = np.asarray(layer(INPUTS, MASK))
    np.testing.assert_array_equal(layer(INPUTS, MASK, training=False), quiet)
    loud = np.asarray(layer(INPUTS, MASK, training=True))
    zeros = (loud[MASK] == 0).mean()
    assert 0.3 < zeros < 0.7 and not (quiet[MASK] == 0).any()


def test_learns_in_a_graph():
    layer = random_layer(num_layers=2)

    @tf.function
    def gradients(inputs, mask):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(inputs, mask, training=True) ** 2)
        return tape.gradient(loss, [w.value for w in layer.trainable_weights])

    found = gradients(tf.constant(INPUTS), tf.constant(MASK))
    assert len(found) == 12 and all(float(tf.reduce_max(tf.abs(g))) > 0 for g in found)


def test_errors():
    with pytest.raises(ValueError, match="`num_layers` must be at least 1. Received: num_layers=0"):
        Bidirectional(4, 0)
    with pytest.raises(ValueError, match="`units` must be at least 1. Received: units=0"):
        Bidirectional(0)
    with pytest.raises(ValueError, match="`cell` must be one of"):
        Bidirectional(4, cell="rnn")


def test_configuration():
    init = {"units": 2, "num_layers": 1, "cell": "gru", "dropout": 0.1}
    check_layer(Bidirectional, init, INPUTS, (3, 5, 4), None, call_kwargs={"padding_mask": MASK})
