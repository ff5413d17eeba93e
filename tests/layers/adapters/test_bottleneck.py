"""The bottleneck adapter, written out in NumPy."""

import numpy as np
import pytest

from kbert.layers.adapters.bottleneck import Adapter
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

X = np.random.default_rng(3).normal(size=(2, 3, 8)).astype("float32")
SHAPES = {"down/kernel": (8, 3), "down/bias": (3,), "up/kernel": (3, 8), "up/bias": (8,)}


@pytest.mark.parametrize("activation", ["gelu", "relu"])
def test_ritual_and_numbers(activation):
    init = {"adapter_dim": 3, "activation": activation, "initializer_range": 0.02}
    layer = check_layer(Adapter, init, X, (2, 3, 8), SHAPES)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    expected = reference.bottleneck_adapter(X, arrays, "", activation)
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)
    np.testing.assert_allclose(layer(X, training=True), expected, atol=1e-5)
    np.testing.assert_allclose(layer(X[0]), expected[0], atol=1e-5)  # any rank


def test_it_starts_close_to_the_identity():
    layer = Adapter(64)
    layer.build((None, 512))
    x = np.random.default_rng(0).normal(size=(5, 512)).astype("float32")
    np.testing.assert_allclose(layer(x), x, atol=1e-3)
    # Truncated at two deviations of 1e-3; biases start at 0.
    for linear in (layer.down, layer.up):
        assert 0 < np.abs(linear.kernel).max() <= 2e-3
        assert not np.asarray(linear.bias).any()


@pytest.mark.parametrize("width, inner, count", [(768, 48, 74_544), (768, 64, 99_136), (8, 3, 59)])
def test_number_of_weights(width, inner, count):
    # 2 D m + m + D, by hand.
    layer = Adapter(inner)
    layer.build((None, None, width))
    assert layer.count_params() == count


def test_wrong_arguments():
    message = "`adapter_dim` must be at least 1. Received: adapter_dim=0"
    with pytest.raises(ValueError, match=message):
        Adapter(0)
    with pytest.raises(ValueError, match="`activation` must be one of .*activation='swish2'"):
        Adapter(2, "swish2")
