"""The encoder block with adapters, written out in NumPy."""

import numpy as np
import pytest

from kbert.layers.adapters.bottleneck import AdapterEncoderBlock
from kbert.layers.encoder_block import EncoderBlock
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

B, T, D, N, INNER, M = 2, 4, 6, 3, 8, 2
X = np.random.default_rng(10).normal(size=(B, T, D)).astype("float32")
PADDING = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], bool)  # the second sentence is all padding
SHAPES = {
    name.removeprefix("encoder_block_0/"): shape
    for name, shape in {
        **reference.bert_array_shapes(10, D, INNER, 1, 4),
        **reference.adapter_shapes(D, M, 1),
    }.items()
    if name.startswith("encoder_block_0/")
}
INIT = {"adapter_dim": M, "num_heads": N, "intermediate_dim": INNER, "epsilon": 1e-6}


def expected_output(arrays, mask, activation="gelu"):
    named = {f"block/{name}": array for name, array in arrays.items()}
    return reference.adapter_encoder_block(X, named, "block", N, mask, activation, 1e-6)


@pytest.mark.parametrize("masked", [False, True])
def test_ritual_and_numbers(masked):
    mask = PADDING[:, None, None] if masked else None
    inputs = (X, mask) if masked else X
    layer = check_layer(AdapterEncoderBlock, INIT, inputs, (B, T, D), SHAPES)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    wide = reference.key_mask(PADDING, T) if masked else None
    expected, probabilities = expected_output(arrays, wide)
    np.testing.assert_allclose(layer(X, mask), expected, atol=2e-5)
    np.testing.assert_allclose(layer.scores(X, mask), probabilities, atol=1e-5)


def test_every_argument_arrives():
    arguments = {
        **INIT,
        "dropout": 0.3,
        "attention_dropout": 0.2,
        "activation": "relu",
        "kernel_initializer": "he_normal",
    }
    layer = AdapterEncoderBlock(**arguments, name="block")
    layer.build(X.shape)
    for residual in (layer.attention_residual, layer.feed_forward_residual):
        assert (residual.dropout, residual.epsilon, residual.adapter_dim) == (0.3, 1e-6, M)
    assert layer.attention.dropout == 0.2
    assert type(layer.kernel_initializer).__name__ == "HeNormal"
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    expected, _ = expected_output(arrays, None, "relu")
    np.testing.assert_allclose(layer(X), expected, atol=2e-5)
    again = AdapterEncoderBlock.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


def test_it_has_the_weights_of_the_plain_block_and_its_adapters():
    layer = AdapterEncoderBlock(**INIT, name="block")
    plain = EncoderBlock(N, INNER, epsilon=1e-6, name="block")
    for block in (layer, plain):
        block.build(X.shape)
    # 2 (2 D m + m + D) = 2 (24 + 2 + 6), by hand
    assert layer.count_params() - plain.count_params() == 64
    assert {v.path for v in plain.weights} < {v.path for v in layer.weights}
    for variable in layer.weights:
        for other in plain.weights:
            if other.path == variable.path:
                variable.assign(other)
    # New adapters are close to the identity.
    np.testing.assert_allclose(layer(X), plain(X), atol=1e-3)


def test_drawn_seeds_make_two_calls_alike():
    layer = AdapterEncoderBlock(**{**INIT, "dropout": 0.5, "attention_dropout": 0.5})
    layer.build(X.shape)
    seeds = layer.draw_seeds()
    once, again = (np.asarray(layer(X, training=True, seeds=seeds)) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert not np.allclose(once, layer(X, training=True))


def test_the_order_of_the_norm_is_fixed():
    with pytest.raises(TypeError, match="norm"):
        AdapterEncoderBlock(**INIT, norm="pre")
