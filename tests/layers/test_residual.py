"""Residual connection and norm, in both orders, against the NumPy reference."""

import numpy as np
import pytest

from kbert.layers.residual import Residual
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

X = np.random.default_rng(8).normal(size=(2, 3, 4)).astype("float32")
SHAPES = {"layer_norm/gamma": (4,), "layer_norm/beta": (4,)}


def sublayer(x):
    return x * x + 1.0


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_ritual_and_numbers(norm):
    init = {"dropout": 0.1, "norm": norm, "epsilon": 1e-3}
    call = {"sublayer": sublayer}
    layer = check_layer(Residual, init, X, (2, 3, 4), SHAPES, call_kwargs=call)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    gamma, beta = arrays.values()
    if norm == "post":
        expected = reference.post_norm_residual(X, sublayer(X), gamma, beta, 1e-3)
    else:
        expected = reference.pre_norm_residual(X, sublayer, gamma, beta, 1e-3)
    np.testing.assert_allclose(layer(X, sublayer=sublayer), expected, atol=1e-5)


def test_dropout_falls_on_the_sublayer_and_not_on_the_residual():
    # By hand: x + dropped (1 / (1 - 0.5) or 0) is x + 2 or x, never 0.
    layer = Residual(0.5, "pre")
    added = np.asarray(layer(X, sublayer=lambda x: x * 0.0 + 1.0, training=True)) - X
    np.testing.assert_allclose(np.unique(np.round(added, 5)), [0.0, 2.0])


def test_unknown_norm():
    with pytest.raises(ValueError, match='`norm` must be "post" or "pre". Received: norm=\'both\''):
        Residual(norm="both")
