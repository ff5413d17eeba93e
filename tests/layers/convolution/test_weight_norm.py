"""Dense layers of directions and lengths."""

import keras
import numpy as np
import pytest

from kbert.layers.convolution.weight_norm import WeightNormLinear
from tests.check_layer import check_layer


def test_by_hand():
    layer = WeightNormLinear(2)
    layer.build((None, 2))
    layer.direction.assign([[3.0, 0.0], [4.0, 2.0]])
    layer.norm.assign([10.0, 1.0])
    layer.bias.assign([0.5, 0.0])
    np.testing.assert_allclose(layer.scale(), [2.0, 0.5], rtol=1e-6)
    inputs = np.array([[1.0, 1.0]], "float32")
    np.testing.assert_allclose(layer(inputs), [[14.5, 1.0]], rtol=1e-6)
    np.testing.assert_allclose(layer(inputs, layer.scale()), [[14.5, 1.0]], rtol=1e-6)


def test_the_variance_at_the_beginning():
    keras.utils.set_random_seed(1)
    layer = WeightNormLinear(400, gain=4.0)
    inputs = np.random.default_rng(1).normal(size=(500, 300)).astype("float32")
    assert float(np.var(layer(inputs))) == pytest.approx(4.0, rel=0.05)


def test_the_ritual():
    inputs = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
    variables = {"direction": (4, 5), "norm": (5,), "bias": (5,)}
    check_layer(WeightNormLinear, {"units": 5, "gain": 2.0}, inputs, (2, 3, 5), variables)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`units` must be at least 1. Received: units=0"):
        WeightNormLinear(0)
