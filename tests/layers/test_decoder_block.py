"""The decoder block against the NumPy reference; its steps are tested with the whole model."""

import keras
import numpy as np
import pytest

from kbert.layers.decoder_block import DecoderBlock
from tests import translation_reference as reference
from tests.check_layer import assign_weights, check_layer

B, T, S, D, N, INNER = 2, 4, 3, 6, 3, 8
DRAW = np.random.default_rng(12)
X = DRAW.normal(size=(B, T, D)).astype("float32")
MEMORY = DRAW.normal(size=(B, S, D)).astype("float32")
CAUSAL = np.tril(np.ones((T, T), bool))[None, None].repeat(B, 0)
MEMORY_MASK = np.array([[1, 1, 0], [0, 0, 0]], bool)  # the second memory is all padding
SHAPES = {
    name.removeprefix("block/"): shape
    for name, shape in reference.decoder_block_shapes("block", D, INNER).items()
}
INIT = {"num_heads": N, "intermediate_dim": INNER, "epsilon": 1e-6}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_ritual_and_numbers(norm):
    inputs = (X, MEMORY, CAUSAL, MEMORY_MASK[:, None, None])
    layer = check_layer(DecoderBlock, {**INIT, "norm": norm}, inputs, (B, T, D), SHAPES)
    arrays = reference.random_translation_arrays(SHAPES, seed=3)
    assign_weights(layer, arrays)
    named = {f"block/{name}": array for name, array in arrays.items()}
    architecture = reference.Architecture(N, 0, 1, norm, "relu", 1e-6)
    wanted = reference.decoder_block(X, MEMORY, named, "block", architecture, MEMORY_MASK)
    np.testing.assert_allclose(layer(*inputs), wanted, atol=2e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_scores_of_the_memory_are_probabilities(norm):
    layer = DecoderBlock(**INIT, norm=norm)
    layer.build(X.shape, MEMORY.shape)
    mask = MEMORY_MASK[:, None, None]
    scores = np.asarray(layer.memory_scores(X, MEMORY, CAUSAL, mask))
    assert scores.shape == (B, N, T, S) and not scores[0, :, :, 2].any() and not scores[1].any()
    np.testing.assert_allclose(scores[0].sum(-1), 1.0, atol=1e-6)


@pytest.mark.filterwarnings("error:Layer")
def test_the_implicit_masks_of_keras():
    """That of the inputs hides their padding beside what the causal mask hides."""
    ids, others = np.array([[5, 3, 1, 0], [2, 4, 1, 3]]), np.array([[1, 2, 0], [3, 0, 0]])
    embedding = keras.layers.Embedding(6, D, mask_zero=True)
    inputs, memory = embedding(ids), embedding(others)
    layer = DecoderBlock(**INIT)
    found = layer(inputs, memory, CAUSAL)
    both = CAUSAL & (ids != 0)[:, None, None]
    wanted = layer(np.asarray(inputs), np.asarray(memory), both, (others != 0)[:, None, None])
    np.testing.assert_array_equal(found, wanted)
