"""LoRA: additions to dense layers, and their merging."""

import numpy as np
import pytest

from kbert.layers.adapters.low_rank import LoraAdapter, LowRank
from kbert.layers.linear import Linear
from tests import numpy_adapters as reference
from tests.check_layer import check_layer

X = np.random.default_rng(0).normal(size=(2, 3, 4)).astype("float32")


def randomized(layer, shape=(None, 4)):
    layer.build(shape)
    for i, weight in enumerate(layer.weights):
        weight.assign(np.random.default_rng(i).normal(size=tuple(weight.shape)))
    return layer


@pytest.mark.parametrize("targets", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_some_parts_of_a_product_are_added_to(targets):
    layer = randomized(LowRank(15, rank=2, alpha=6.0, parts=3, targets=targets))
    found = np.split(np.asarray(layer(X)), 3, axis=-1)
    for part in range(3):
        expected = np.zeros((6, 5))
        if part in targets:
            i = targets.index(part)
            down = np.asarray(layer.down)[:, 2 * i : 2 * i + 2]
            expected = 6.0 / 2 * X.reshape(-1, 4) @ down @ np.asarray(layer.up)[i]
        np.testing.assert_allclose(found[part], expected, atol=1e-5)
    dense = randomized(Linear(15))
    merged = Linear(15)
    merged.build((None, 4))
    merged.kernel.assign(layer.merged(dense.kernel))
    merged.bias.assign(dense.bias)
    both = dense(X, added=layer(X))
    np.testing.assert_allclose(merged(X), both, atol=1e-5)


def test_the_addition_is_before_the_activation():
    dense, layer = randomized(Linear(3, "relu")), randomized(LowRank(3, rank=2))
    weights = {"a": np.asarray(layer.down), "b": np.asarray(layer.up)[0]}
    kernel, bias = np.asarray(dense.kernel), np.asarray(dense.bias)
    expected = np.maximum(reference.lora_dense(X, kernel, bias, weights, 8.0), 0.0)
    np.testing.assert_allclose(dense(X, added=layer(X)), expected, atol=1e-5)


def test_it_begins_with_nothing():
    layer = LowRank(6, rank=2)
    layer.build((None, 400))
    assert not np.asarray(layer(np.ones((1, 400), "float32"))).any()
    down = np.asarray(layer.down)  # uniform within 1 / sqrt(in)
    assert 0.045 < np.abs(down).max() <= 0.05 + 1e-6 and abs(down.mean()) < 0.01


def test_configuration():
    init = {"units": 6, "rank": 2, "alpha": 4.0, "parts": 3, "targets": (0, 2)}
    check_layer(LowRank, init, X[0], (3, 6), {"down": (4, 4), "up": (2, 2, 2)})


def test_the_targets_of_a_block():
    adapter = LoraAdapter(8, rank=2, targets=("output", "value", "query"))
    adapter.build((None, None, 4))
    assert adapter.targets == ("query", "value", "output")
    assert sorted(adapter.low_rank) == ["output", "qkv"]
    assert adapter.low_rank["qkv"].targets == (0, 2)
    assert adapter.added("intermediate", X) is None
    assert adapter.added("qkv", X).shape == (6, 12)
    assert adapter.added("output", np.ones((2, 8), "float32")).shape == (2, 4)


def test_errors():
    with pytest.raises(ValueError, match="`rank` must be at least 1. Received: rank=0"):
        LowRank(4, rank=0)
    for targets in ((), (3,), (1, 0)):
        with pytest.raises(ValueError, match=r"`targets` must be rising numbers in \[0, 3\)"):
            LowRank(6, parts=3, targets=targets)
    with pytest.raises(ValueError, match="`targets` must be some of query, key.*Received: .'q'."):
        LoraAdapter(8, targets=("q",))
