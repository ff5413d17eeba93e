"""Activations against the formulas of the NumPy reference."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.linear import LOWEST, activate, activation_name
from tests import numpy_reference as reference

X = np.linspace(-6.0, 6.0, 121).astype("float32")


@pytest.mark.parametrize("name", ["gelu", "gelu_approximate", "quick_gelu", "relu", "tanh"])
@pytest.mark.parametrize("training", [None, True])
def test_values_are_the_reference(name, training):
    values = keras.ops.convert_to_numpy(activate(X, name, training))
    np.testing.assert_allclose(values, reference.ACTIVATIONS[name](X), rtol=0, atol=2e-6)


def test_silu_by_hand():
    # x sigmoid(x) at log 3: sigmoid is 3/4.
    value = keras.ops.convert_to_numpy(activate(np.log([3.0]).astype("float32"), "silu"))
    np.testing.assert_allclose(value, [0.75 * np.log(3.0)], rtol=1e-6)


def test_no_activation_is_the_identity():
    assert activate(X, None) is X


def test_the_two_gelus_differ():
    # By the reference they lie up to 4.7e-4 apart, so one cannot stand for the other unnoticed.
    apart = np.abs(reference.gelu(X) - reference.gelu_tanh(X)).max()
    assert 4e-4 < apart < 5e-4


@pytest.mark.parametrize("name", ["gelu", "gelu_approximate"])
@pytest.mark.parametrize("training", [False, True])
def test_gradient_is_the_slope_of_the_reference(name, training):
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = activate(x, name, training)
    gradient = tape.gradient(y, x, output_gradients=tf.fill(x.shape, 3.0))
    function, step = reference.ACTIVATIONS[name], 1e-5
    slope = (function(X.astype("float64") + step) - function(X.astype("float64") - step)) / (
        2 * step
    )
    np.testing.assert_allclose(gradient, 3.0 * slope, rtol=0, atol=1e-5)


def test_unknown_name_lists_the_known_ones():
    message = "`activation` must be one of .*'gelu', 'gelu_approximate'.*Received: .*'gelu_new'"
    with pytest.raises(ValueError, match=message):
        activation_name("gelu_new")
    assert activation_name(None) is None
    assert activation_name("gelu") == "gelu"


@pytest.mark.parametrize("name", LOWEST)
def test_no_activation_is_lower(name: str):
    found = np.asarray(activate(keras.ops.linspace(-20.0, 20.0, 400_001), name))
    assert LOWEST[name] <= found.min() <= LOWEST[name] + 1e-4
