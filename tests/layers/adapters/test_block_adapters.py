"""Bottleneck adapters of one block; whole encoders are in tests/models/test_adaptable.py."""

import numpy as np
import pytest

from kbert.layers.adapters.block_adapters import (
    BlockAdapter,
    Bottleneck,
    HoulsbyAdapter,
    PfeifferAdapter,
)
from kbert.layers.encoder_block import ATTENTION, FEED_FORWARD, EncoderBlock
from kbert.layers.residual import LayerNorm
from tests import numpy_adapters as reference
from tests.check_layer import check_layer

D, M = 6, 3
draw = np.random.default_rng(0)
X, H = (draw.normal(size=(2, 4, D)).astype("float32") for _ in range(2))


def randomized(layer):
    layer.build((None, None, D))
    for i, weight in enumerate(layer.weights):
        weight.assign(np.random.default_rng(i).normal(0.5, 0.5, tuple(weight.shape)))
    return layer


def arrays(layer):
    return {
        f"{part}/{name}": np.asarray(getattr(getattr(layer, part), name))
        for part in ("down", "up")
        for name in ("kernel", "bias")
    }


NORM = randomized(LayerNorm())
OWN = {"gamma": np.asarray(NORM.gamma), "beta": np.asarray(NORM.beta)}


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "tanh"])
def test_a_bottleneck(activation):
    layer = randomized(Bottleneck(M, activation))
    expected = reference.bottleneck(X, arrays(layer), activation)
    np.testing.assert_allclose(layer(X), expected, atol=1e-5)
    shapes = {"down/kernel": (D, M), "down/bias": (M,), "up/kernel": (M, D), "up/bias": (D,)}
    init = {"adapter_dim": M, "activation": activation, "initializer_range": 0.5}
    check_layer(Bottleneck, init, X, X.shape, shapes)


def test_pfeiffer_is_behind_the_feed_forward_network_alone():
    adapter = randomized(PfeifferAdapter(M, "gelu"))
    found = adapter.behind(FEED_FORWARD, X, H, NORM)
    weights = arrays(adapter.bottleneck)
    np.testing.assert_allclose(found, reference.pfeiffer(X, H, weights, OWN, "gelu"), atol=1e-5)
    np.testing.assert_allclose(adapter.behind(ATTENTION, X, H, NORM), NORM(X + H), atol=1e-6)
    assert adapter.added("qkv", X) is None


def test_houlsby_has_its_own_norms_behind_both_sublayers():
    adapter = randomized(HoulsbyAdapter(M))
    for sublayer in (ATTENTION, FEED_FORWARD):
        norm = adapter.norms[sublayer]
        weights = arrays(adapter.bottlenecks[sublayer])
        weights |= {f"norm/{name}": np.asarray(getattr(norm, name)) for name in ("gamma", "beta")}
        expected = reference.houlsby(X, H, weights, OWN, "gelu")
        np.testing.assert_allclose(adapter.behind(sublayer, X, H, NORM), expected, atol=1e-5)


def test_houlsby_begins_with_the_norms_of_the_block():
    block = randomized(EncoderBlock(2, 8))
    adapter = randomized(HoulsbyAdapter(M))
    adapter.begin_in(block)
    for name in (ATTENTION, FEED_FORWARD):
        own = getattr(block, f"{name}_residual").layer_norm
        np.testing.assert_array_equal(adapter.norms[name].gamma, own.gamma)
        np.testing.assert_array_equal(adapter.norms[name].beta, own.beta)


def test_an_adapter_of_nothing_changes_nothing():
    block = randomized(EncoderBlock(2, 8, dropout=0.0))
    np.testing.assert_array_equal(block(X, adapter=BlockAdapter()), block(X))
    np.testing.assert_array_equal(block.scores(X, adapter=BlockAdapter()), block.scores(X))


def test_errors():
    for kind in (Bottleneck, HoulsbyAdapter, PfeifferAdapter):
        with pytest.raises(ValueError, match="`adapter_dim` must be at least 1. Received: adapter"):
            kind(0)
        with pytest.raises(ValueError, match="`activation` must be one of .*Received: .*'step'"):
            kind(2, "step")
