import numpy as np
import pytest

from kbert.layers.fused_blocks import FusedResidual

X = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")


def normed(x):
    """LayerNorm with weights 1 and 0 (Ba et al. 2016)."""
    x = x.astype("float64")
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)


@pytest.mark.parametrize("weights", [None, (1.0, 0.0), (0.25, 2.0)])
def test_both_orders(weights):
    r1, r2 = weights or (0.5, 0.5)
    for norm in ("post", "pre"):
        layer = FusedResidual(1.0, 0.0, norm, 1e-6)
        layer.build(X.shape)
        layer.drop_net.forced = weights
        found = layer(X, sublayer=lambda x: (2.0 * x, x * x))
        if norm == "post":
            expected = normed(X + r1 * 2.0 * X + r2 * X * X)
        else:
            y = normed(X)
            expected = X + r1 * 2.0 * y + r2 * y * y
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_each_branch_has_a_dropout_of_its_own():
    layer = FusedResidual(0.0, 0.5, "pre", 1e-6)
    layer.build(X.shape)
    ones = np.ones((8, 50, 4), "float32")
    found = np.asarray(layer(np.zeros_like(ones), sublayer=lambda x: (ones, ones), training=True))
    # A unit of each branch is 0 or 2, weighed by 1/2: together 0, 1 or 2.
    assert set(np.unique(found)) == {0.0, 1.0, 2.0}


def test_configuration():
    layer = FusedResidual(0.3, 0.1, "pre", 1e-6, name="r")
    again = FusedResidual.from_config(layer.get_config())
    assert (again.drop_net_rate, again.dropout) == (0.3, 0.1)
    assert (again.norm, again.epsilon) == ("pre", 1e-6)
