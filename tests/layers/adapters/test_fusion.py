"""AdapterFusion in one block; whole encoders are in tests/models/test_adaptable.py."""

import numpy as np

from kbert.layers.adapters.block_adapters import PfeifferAdapter
from kbert.layers.adapters.fusion import (
    AdapterFusion,
    FusedAdapters,
    NearIdentity,
    TowardsIdentity,
)
from kbert.layers.encoder_block import ATTENTION, FEED_FORWARD
from tests import numpy_adapters as reference
from tests.layers.adapters.test_block_adapters import NORM, OWN, D, H, X, arrays, randomized


def fused(count=3):
    adapters = [randomized(PfeifferAdapter(2 + i, "relu")) for i in range(count)]
    return FusedAdapters(randomized(AdapterFusion()), adapters)


def weights_of(fusion):
    found = {"value/kernel": np.asarray(fusion.fusion.value)}
    for name in ("query", "key"):
        layer = getattr(fusion.fusion, name)
        found[f"{name}/kernel"] = np.asarray(layer.kernel)
        found[f"{name}/bias"] = np.asarray(layer.bias)
    for i, adapter in enumerate(fusion.adapters):
        some = arrays(adapter.bottleneck)
        found |= {f"adapter_{i}/{name}": array for name, array in some.items()}
    return found


def test_numbers():
    fusion = fused()
    expected = reference.adapter_fusion(X, H, weights_of(fusion), OWN, "relu")
    np.testing.assert_allclose(fusion.behind(FEED_FORWARD, X, H, NORM), expected, atol=2e-5)
    np.testing.assert_allclose(fusion.behind(ATTENTION, X, H, NORM), NORM(X + H), atol=1e-6)
    assert fusion.added("qkv", X) is None


def test_the_weights_of_the_adapters():
    fusion = fused()
    asked = np.asarray(NORM(X + H))
    outputs = [np.asarray(output) for output in fusion.outputs(asked)]
    found = np.asarray(fusion.fusion.weights_of(asked, outputs))
    expected = reference.fusion_weights(asked, outputs, weights_of(fusion))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(found.sum(axis=-1), 1.0, atol=1e-6)
    assert found.shape == (2, 4, 3)


def test_the_weights_are_seen_where_asked_for():
    seen = []
    plain = fused()
    fusion = FusedAdapters(plain.fusion, plain.adapters, seen)
    assert fusion.behind(ATTENTION, X, H, NORM) is not None and not seen
    found = fusion.behind(FEED_FORWARD, X, H, NORM)
    asked = NORM(X + H)
    (weights,) = seen
    np.testing.assert_array_equal(
        weights, plain.fusion.weights_of(asked, plain.outputs(asked)), strict=True
    )
    np.testing.assert_array_equal(found, plain.behind(FEED_FORWARD, X, H, NORM))


def test_equal_adapters_are_one():
    adapter = randomized(PfeifferAdapter(3, "tanh"))
    fusion = AdapterFusion()
    fusion.build((None, None, D))
    both = FusedAdapters(fusion, [adapter, adapter])
    one = adapter.behind(FEED_FORWARD, X, H, NORM)
    np.testing.assert_allclose(both.behind(FEED_FORWARD, X, H, NORM), one, atol=1e-4)


def test_values_begin_near_the_identity_and_are_held_there():
    found = np.asarray(NearIdentity()((3, 3), "float32"))
    np.testing.assert_allclose(found, [[1, 1e-6, 1e-6], [1e-6, 1, 1e-6], [1e-6, 1e-6, 1]])
    matrix = np.array([[1.0, 2.0], [0.0, 4.0]], "float32")
    assert float(TowardsIdentity(0.5)(matrix)) == 0.5 * (4.0 + 9.0)
    assert TowardsIdentity(0.5).get_config() == {"factor": 0.5}
    layer = randomized(AdapterFusion(regularization=0.1))
    expected = reference.fusion_regularization([np.asarray(layer.value)], 0.1)
    np.testing.assert_allclose(float(sum(layer.losses)), expected, rtol=1e-5)
