"""The encoder block against the NumPy reference."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.encoder_block import EncoderBlock
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

B, T, D, N, INNER = 2, 4, 6, 3, 8
X = np.random.default_rng(10).normal(size=(B, T, D)).astype("float32")
PADDING = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], bool)  # the second sentence is all padding
SHAPES = {
    name.removeprefix("encoder_block_0/"): shape
    for name, shape in reference.bert_array_shapes(10, D, INNER, 1, 4).items()
    if name.startswith("encoder_block_0/")
}
INIT = {"num_heads": N, "intermediate_dim": INNER, "epsilon": 1e-6}


def expected_output(arrays, mask, norm, activation="gelu"):
    named = {f"block/{name}": array for name, array in arrays.items()}
    return reference.encoder_block(
        X, named, "block", N, mask, activation, 1e-6, pre_norm=norm == "pre"
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("masked", [False, True])
def test_ritual_and_numbers(norm, masked):
    mask = PADDING[:, None, None] if masked else None
    init = {**INIT, "norm": norm}
    layer = check_layer(EncoderBlock, init, (X, mask) if masked else X, (B, T, D), SHAPES)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    wide = reference.key_mask(PADDING, T) if masked else None
    expected, probabilities = expected_output(arrays, wide, norm)
    np.testing.assert_allclose(layer(X, mask), expected, atol=2e-5)
    np.testing.assert_allclose(layer.scores(X, mask), probabilities, atol=1e-5)


def test_other_activation():
    layer = EncoderBlock(**INIT, activation="relu", name="block")
    layer.build(X.shape)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    expected, _ = expected_output(arrays, None, "post", "relu")
    np.testing.assert_allclose(layer(X), expected, atol=2e-5)


def test_training_without_dropout_computes_the_same():
    layer = EncoderBlock(**INIT, dropout=0.0, attention_dropout=0.0, name="block")
    layer.build(X.shape)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    expected, _ = expected_output(arrays, None, "post")
    np.testing.assert_allclose(layer(X, training=True), expected, atol=2e-5)


def test_drawn_seeds_make_two_calls_alike():
    layer = EncoderBlock(**INIT, dropout=0.5, attention_dropout=0.5)
    layer.build(X.shape)
    seeds = layer.draw_seeds()
    once, again = (np.asarray(layer(X, training=True, seeds=seeds)) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert not np.allclose(once, layer(X, training=True))


def test_gradients_with_a_sentence_of_padding_are_finite():
    layer = EncoderBlock(**INIT)
    layer.build(X.shape)
    with tf.GradientTape() as tape:
        total = tf.reduce_sum(layer(X, PADDING[:, None, None], training=True) ** 2)
    gradients = tape.gradient(total, [v.value for v in layer.trainable_variables])
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_unknown_norm():
    with pytest.raises(ValueError, match='`norm` must be "post" or "pre". Received: norm=\'rms\''):
        EncoderBlock(**INIT, norm="rms")


@pytest.mark.filterwarnings("error:Layer")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_implicit_mask_of_keras_goes_through_a_stack(norm):
    ids = np.array([[5, 3, 1, 0], [0, 0, 0, 0]])  # `PADDING` is where they are not 0
    inputs = keras.Input((T,), dtype="int32")
    embedding = keras.layers.Embedding(6, D, mask_zero=True)
    blocks = [EncoderBlock(N, INNER, norm=norm) for _ in range(2)]
    model = keras.Model(inputs, blocks[1](blocks[0](embedding(inputs))))
    states = np.asarray(embedding(ids))
    mask = PADDING[:, None, None]
    expected = blocks[1](blocks[0](states, mask), mask)
    np.testing.assert_allclose(model(ids), expected, atol=1e-6)
    alone = blocks[1](blocks[0](states, mask=PADDING), mask=PADDING)
    np.testing.assert_array_equal(alone, expected)
