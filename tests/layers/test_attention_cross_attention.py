"""Attention to another sequence against the NumPy reference."""

import keras
import numpy as np
import pytest

from kbert.layers.attention import CrossAttention, MultiHeadAttention, SelfAttention
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

B, T, S, D, M, N = 2, 4, 5, 6, 7, 3
DRAW = np.random.default_rng(9)
X = DRAW.normal(size=(B, T, D)).astype("float32")
MEMORY = DRAW.normal(size=(B, S, M)).astype("float32")
CROSS_SHAPES = {
    "query/kernel": (D, D),
    "query/bias": (D,),
    "key_value/kernel": (M, 2 * D),
    "key_value/bias": (2 * D,),
    "output/kernel": (D, D),
    "output/bias": (D,),
}


def cross_weights(arrays):
    kernel, bias = arrays["key_value/kernel"], arrays["key_value/bias"]
    return reference.AttentionWeights(
        arrays["query/kernel"],
        arrays["query/bias"],
        kernel[:, :D],
        bias[:D],
        kernel[:, D:],
        bias[D:],
        arrays["output/kernel"],
        arrays["output/bias"],
    )


def per_head(mask):
    """(B, T, S) -> (B, 1, T, S), as kbert's layers take it."""
    return None if mask is None else mask[:, None]


@pytest.mark.parametrize("blind", [False, True])
def test_cross_attention_with_its_own_key_value_width(blind):
    mask = np.ones((B, T, S), bool)
    mask[0, :, 3:] = False
    if blind:
        mask[1, 2] = False
    init = {"num_heads": N, "dropout": 0.1}
    inputs = (X, MEMORY, per_head(mask))
    layer = check_layer(CrossAttention, init, inputs, (B, T, D), CROSS_SHAPES)
    arrays = reference.random_arrays(CROSS_SHAPES)
    assign_weights(layer, arrays)
    expected, probabilities = reference.multi_head_attention(
        X, MEMORY, MEMORY, cross_weights(arrays), N, mask
    )
    np.testing.assert_allclose(layer(X, MEMORY, per_head(mask)), expected, atol=1e-5)
    np.testing.assert_allclose(layer.scores(X, MEMORY, per_head(mask)), probabilities, atol=1e-5)
    if blind:
        output = np.asarray(layer(X, MEMORY, per_head(mask)))
        np.testing.assert_allclose(output[1, 2], arrays["output/bias"], atol=1e-6)


def test_the_implicit_mask_of_a_memory_hides_its_padding():
    ids = np.array([[5, 3, 1, 0, 0], [2, 4, 0, 0, 0]])
    memory = keras.layers.Embedding(6, M, mask_zero=True)(ids)
    layer = CrossAttention(N)
    found = layer(X, memory)
    expected = layer(X, np.asarray(memory), (ids != 0)[:, None, None])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(layer(X, np.asarray(memory), memory_mask=ids != 0), expected)


def test_both_attentions_share_their_constructor():
    assert issubclass(SelfAttention, MultiHeadAttention)
    assert issubclass(CrossAttention, MultiHeadAttention)
    config = SelfAttention(N, 0.1, False, keras.initializers.Zeros()).get_config()
    again = CrossAttention.from_config(config).get_config()
    assert again == config
