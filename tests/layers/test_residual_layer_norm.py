"""Layer normalization against the formula of the NumPy reference."""

import numpy as np
import pytest
from keras import ops

from kbert.layers.residual import LayerNorm
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

DRAW = np.random.default_rng(5)
X = DRAW.normal(2.0, 3.0, size=(2, 3, 8)).astype("float32")
WEIGHTS = {"gamma": DRAW.normal(1.0, 0.5, size=8), "beta": DRAW.normal(size=8)}


@pytest.mark.parametrize("epsilon", [1e-12, 1e-3, 2.0])
def test_ritual_and_numbers(epsilon):
    shapes = {"gamma": (8,), "beta": (8,)}
    layer = check_layer(LayerNorm, {"epsilon": epsilon}, X, (2, 3, 8), shapes)
    assign_weights(layer, WEIGHTS)
    expected = reference.layer_norm(X, WEIGHTS["gamma"], WEIGHTS["beta"], epsilon)
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)


def test_a_constant_row_gives_beta():
    # By hand: x - mean is 0, whatever the variance.
    layer = LayerNorm(1e-12)
    layer.build((None, 8))
    assign_weights(layer, WEIGHTS)
    np.testing.assert_allclose(layer(np.full((1, 8), 7.0)), [WEIGHTS["beta"]], atol=1e-6)


def test_float16_does_not_overflow():
    # 3000^2 is far above 65504, the largest float16.
    x = X * 1000.0
    layer = LayerNorm(1e-12, dtype="float16")
    expected = reference.layer_norm(x, np.ones(8), np.zeros(8), 1e-12)
    np.testing.assert_allclose(np.asarray(layer(x)).astype("float32"), expected, atol=5e-3)


@pytest.mark.parametrize("policy, bits", [("bfloat16", 8), ("mixed_bfloat16", 8), ("float16", 11)])
def test_half_precision_rounds_once(policy, bits):
    # What comes out is the exact answer to the rounded input and weights, rounded: half of the
    # last bit, and no more. Means and variances in bfloat16 would be off by several bits.
    layer = LayerNorm(1e-12, dtype=policy)
    layer.build((None, 8))
    assign_weights(layer, WEIGHTS)
    x = ops.cast(X, layer.compute_dtype)
    gamma, beta = (
        ops.convert_to_numpy(ops.cast(ops.cast(WEIGHTS[name], layer.compute_dtype), "float64"))
        for name in ("gamma", "beta")
    )
    exact = ops.convert_to_numpy(ops.cast(x, "float64"))
    expected = reference.layer_norm(exact, gamma, beta, 1e-12)
    found = ops.convert_to_numpy(ops.cast(layer(x), "float64"))
    np.testing.assert_allclose(found, expected, rtol=1.01 * 2.0**-bits, atol=1e-6)
