"""The dense layer: the Keras ritual, and numbers of the reference."""

import keras
import numpy as np
import pytest

from kbert.layers.linear import Linear, normal_linear
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

DRAW = np.random.default_rng(3)
X = DRAW.normal(size=(2, 3, 4)).astype("float32")
WEIGHTS = {"kernel": DRAW.normal(size=(4, 5)), "bias": DRAW.normal(size=5)}


@pytest.mark.parametrize("activation", [None, "gelu", "tanh"])
def test_ritual_and_numbers(activation):
    init = {"units": 5, "activation": activation}
    layer = check_layer(Linear, init, X, (2, 3, 5), {"kernel": (4, 5), "bias": (5,)})
    assign_weights(layer, WEIGHTS)
    expected = reference.ACTIVATIONS[activation or "linear"](
        reference.dense(X, WEIGHTS["kernel"], WEIGHTS["bias"])
    )
    for training in (False, True):
        np.testing.assert_allclose(layer(X, training=training), expected, atol=1e-5)


@pytest.mark.parametrize("shape", [(6, 4), (2, 3, 2, 4)])
def test_other_ranks(shape):
    x = np.random.default_rng(4).normal(size=shape).astype("float32")
    layer = check_layer(Linear, {"units": 5}, x, (*shape[:-1], 5), 2)
    assign_weights(layer, WEIGHTS)
    expected = reference.dense(x, WEIGHTS["kernel"], WEIGHTS["bias"])
    np.testing.assert_allclose(layer(x), expected, atol=1e-5)


def test_without_bias():
    layer = check_layer(Linear, {"units": 5, "use_bias": False}, X, (2, 3, 5), {"kernel": (4, 5)})
    assign_weights(layer, {"kernel": WEIGHTS["kernel"]})
    np.testing.assert_allclose(layer(X), reference.dense(X, WEIGHTS["kernel"]), atol=1e-5)


def test_initializer_comes_back():
    layer = Linear(5, kernel_initializer=keras.initializers.TruncatedNormal(stddev=0.02))
    again = Linear.from_config(layer.get_config())
    assert again.kernel_initializer.stddev == 0.02


def test_errors():
    with pytest.raises(ValueError, match="`units` must be at least 1. Received: units=0"):
        Linear(0)
    with pytest.raises(ValueError, match="`activation` must be one of .*Received: .*'swish'"):
        Linear(3, "swish")


def test_weights_from_berts_truncated_normal():
    layer = normal_linear(400, 0.02, "tanh", name="hidden")
    layer.build((None, 300))
    kernel = np.asarray(layer.kernel)
    # Cut at two deviations: 0.88 of the deviation is left (that of a normal cut there).
    assert np.abs(kernel).max() <= 0.04
    assert kernel.std() == pytest.approx(0.88 * 0.02, rel=0.02)
    assert (layer.units, layer.activation, layer.name) == (400, "tanh", "hidden")
