"""Attention against the NumPy reference: masks, blind queries, other widths."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.attention import (
    SelfAttention,
    attention_probabilities,
    dot_product_attention,
)
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

B, T, D, N = 2, 4, 6, 3
DRAW = np.random.default_rng(9)
X = DRAW.normal(size=(B, T, D)).astype("float32")
SELF_SHAPES = {
    "qkv/kernel": (D, 3 * D),
    "qkv/bias": (3 * D,),
    "output/kernel": (D, D),
    "output/bias": (D,),
}
PADDING = np.array([[1, 1, 1, 0], [1, 1, 0, 0]], bool)
BLIND = np.ones((B, T, T), bool)
BLIND[0, 1] = False  # one query that may attend to nothing
BLIND[1] = False  # a sentence in which none may
SELF_MASKS = {
    "none": None,
    "padding": reference.key_mask(PADDING, T),
    "causal": np.stack([reference.causal_mask(T)] * B),
    "both": reference.key_mask(PADDING, T) & reference.causal_mask(T),
    "blind": BLIND,
}


def self_weights(arrays):
    return reference.block_attention_weights(
        {f"block/attention/{name}": array for name, array in arrays.items()}, "block"
    )


def per_head(mask):
    """(B, T, T) -> (B, 1, T, T), as kbert's layers take it."""
    return None if mask is None else mask[:, None]


@pytest.mark.parametrize("name", SELF_MASKS)
def test_functions_are_the_reference(name):
    query, key, value = (DRAW.normal(size=(B, N, T, 2)).astype("float32") for _ in range(3))
    mask = SELF_MASKS[name]
    probabilities = attention_probabilities(query, key, per_head(mask))
    context = dot_product_attention(probabilities, value, per_head(mask))
    expected, expected_probabilities = reference.scaled_dot_product_attention(
        query, key, value, mask
    )
    np.testing.assert_allclose(context, expected, atol=1e-5)
    assert np.isfinite(probabilities).all()
    seen = np.broadcast_to(True if mask is None else mask.any(-1)[:, None], (B, N, T))
    np.testing.assert_allclose(
        np.asarray(probabilities)[seen], expected_probabilities[seen], atol=1e-5
    )


@pytest.mark.parametrize("name", SELF_MASKS)
def test_self_attention_is_the_reference(name):
    mask = SELF_MASKS[name]
    layer = SelfAttention(N, name="attention")
    layer.build(X.shape)
    arrays = reference.random_arrays(SELF_SHAPES)
    assign_weights(layer, arrays)
    expected, probabilities = reference.multi_head_attention(
        X, X, X, self_weights(arrays), N, mask
    )
    np.testing.assert_allclose(layer(X, per_head(mask)), expected, atol=1e-5)
    np.testing.assert_allclose(layer.scores(X, per_head(mask)), probabilities, atol=1e-5)


def test_self_attention_ritual():
    init = {"num_heads": N, "dropout": 0.1}
    mask = PADDING[:, None, None]
    check_layer(SelfAttention, init, (X, mask), (B, T, D), SELF_SHAPES)
    check_layer(SelfAttention, {"num_heads": 1, "use_bias": False}, X, (B, T, D), 2)


IDS = np.array([[5, 3, 1, 0], [2, 4, 0, 0]])  # `PADDING` is where they are not 0


def after_embedding(*layers):
    """An ordinary functional model of Keras: an embedding that masks 0, and some layers."""
    ids = keras.Input((T,), dtype="int32")
    states = keras.layers.Embedding(6, D, mask_zero=True)(ids)
    for layer in layers:
        states = layer(states)
    return keras.Model(ids, states)


@pytest.mark.filterwarnings("error:Layer")
def test_the_implicit_mask_of_keras_hides_padding():
    layer = SelfAttention(N)
    model = after_embedding(layer, keras.layers.GlobalAveragePooling1D())
    arrays = reference.random_arrays(SELF_SHAPES)
    assign_weights(layer, arrays)
    states = np.asarray(model.layers[1](IDS))
    wide = reference.key_mask(PADDING, T)
    expected, _ = reference.multi_head_attention(
        states, states, states, self_weights(arrays), N, wide
    )
    np.testing.assert_allclose(layer(states, mask=PADDING), expected, atol=1e-5)
    # Pooling shows that the mask goes through: it averages real tokens only.
    pooled = [row[real].mean(0) for row, real in zip(expected, PADDING)]
    np.testing.assert_allclose(model(IDS), pooled, atol=1e-5)
    np.testing.assert_allclose(model.predict(IDS, verbose=0), pooled, atol=1e-5)


def test_an_implicit_mask_beside_an_explicit_one():
    layer, causal = SelfAttention(N), per_head(SELF_MASKS["causal"])
    states = keras.layers.Embedding(6, D, mask_zero=True)(IDS)
    found = layer(states, causal)
    expected = layer(np.asarray(states), per_head(SELF_MASKS["both"]))
    np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("policy", ["float32", "bfloat16", "mixed_bfloat16", "float16"])
def test_a_blind_query_gives_the_output_bias_in_every_type(policy):
    layer = SelfAttention(N, dtype=policy, name="attention")
    layer.build(X.shape)
    arrays = reference.random_arrays(SELF_SHAPES)
    assign_weights(layer, arrays)
    output = tf.cast(layer(X, per_head(BLIND)), "float32").numpy()
    for row in (output[0, 1], *output[1]):
        np.testing.assert_allclose(row, arrays["output/bias"], atol=5e-3)


def test_gradients_of_blind_queries_are_finite():
    layer = SelfAttention(N)
    layer.build(X.shape)
    x = tf.constant(X)
    with tf.GradientTape() as tape:
        tape.watch(x)
        total = tf.reduce_sum(layer(x, per_head(BLIND)) ** 2)
    gradients = tape.gradient(total, [x, *(v.value for v in layer.trainable_variables)])
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    np.testing.assert_array_equal(gradients[0][1], 0.0)  # nobody looks at this sentence


def test_what_is_masked_has_no_influence():
    layer = SelfAttention(N)
    other = X.copy()
    other[~PADDING] = 1e3
    mask = PADDING[:, None, None]
    first, second = np.asarray(layer(X, mask)), np.asarray(layer(other, mask))
    np.testing.assert_allclose(first[PADDING], second[PADDING], atol=1e-6)


def test_large_scores_stay_finite_and_masked():
    # Scores of about 1e6, far from the additive mask's -1e9 but large for any exponential.
    query = np.full((1, 1, 1, 1), 1e3, "float32")
    key = np.array([[[[1e3], [2e3]]]], "float32")
    probabilities = attention_probabilities(query, key, np.array([[[[True, False]]]]))
    np.testing.assert_allclose(probabilities, [[[[1.0, 0.0]]]])


def test_dropout_of_probabilities_only_in_training():
    layer = SelfAttention(N, dropout=0.5)
    quiet = np.asarray(layer(X))
    np.testing.assert_array_equal(layer(X, training=False), quiet)
    assert not np.allclose(layer(X, training=True), quiet)


def test_errors():
    with pytest.raises(ValueError, match="`num_heads` must be at least 1. Received: num_heads=0"):
        SelfAttention(0)
    message = "`num_heads` must divide the hidden width. Received: num_heads=4, hidden width 6"
    with pytest.raises(ValueError, match=message):
        SelfAttention(4).build((None, None, 6))


def test_a_single_key_has_all_of_it_without_a_warning(recwarn):
    query = tf.constant(np.random.default_rng(1).normal(size=(2, 3, 4, 5)), "float32")
    key = query[:, :, :1]
    with tf.GradientTape() as tape:
        tape.watch(query)
        found = attention_probabilities(query, key, np.zeros((2, 1, 1, 1), bool))
    np.testing.assert_array_equal(found, np.ones((2, 3, 4, 1)))
    assert not tape.gradient(found, query).numpy().any()
    assert not [w for w in recwarn if "softmax" in str(w.message)]
