import numpy as np
import pytest

from kbert.layers.fused_blocks import FusedDecoderBlock
from tests import translation_reference as reference
from tests.check_layer import assign_weights

B, T, S, L, D, M, N, INNER = 2, 4, 3, 5, 6, 7, 3, 8
DRAW = np.random.default_rng(14)
X = DRAW.normal(size=(B, T, D)).astype("float32")
MEMORY = DRAW.normal(size=(B, S, D)).astype("float32")
BERT = DRAW.normal(size=(B, L, M)).astype("float32")
CAUSAL = np.tril(np.ones((T, T), bool))[None, None]
MASK = np.array([[1, 1, 0], [0, 0, 0]], bool)
BERT_MASK = np.array([[1, 1, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
SHAPES = {
    name.removeprefix("block/"): shape
    for name, shape in reference.decoder_block_shapes("block", D, INNER, M).items()
}


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_numbers(norm):
    layer = FusedDecoderBlock(N, INNER, norm=norm, epsilon=1e-6, name="block")
    layer.build(X.shape, (MEMORY.shape, BERT.shape))
    found = {v.path.removeprefix("block/"): tuple(v.shape) for v in layer.weights}
    assert {k: v for k, v in found.items() if "seed_generator" not in k} == SHAPES
    arrays = reference.random_translation_arrays(SHAPES, seed=3)
    assign_weights(layer, arrays)
    named = {f"block/{name}": array for name, array in arrays.items()}
    architecture = reference.Architecture(N, 0, 1, norm, "relu", 1e-6)
    masks = (MASK[:, None, None], BERT_MASK[:, None, None])
    for weights in ((0.5, 0.5), (1.0, 0.0), (0.0, 1.0)):
        layer.cross_attention_residual.drop_net.forced = weights
        bert = reference.BertMemory(BERT, BERT_MASK, weights)
        wanted = reference.decoder_block(
            X, MEMORY, named, "block", architecture, MASK, bert=bert
        )
        output = layer(X, (MEMORY, BERT), CAUSAL, masks)
        np.testing.assert_allclose(output, wanted, atol=2e-5)
    scores = np.asarray(layer.memory_scores(X, (MEMORY, BERT), CAUSAL, masks))
    np.testing.assert_allclose(scores[0].sum(-1), 1.0, atol=1e-6)


def test_configuration():
    layer = FusedDecoderBlock(N, INNER, drop_net=0.3)
    again = FusedDecoderBlock.from_config(layer.get_config())
    assert again.drop_net == 0.3 and again.num_heads == N
