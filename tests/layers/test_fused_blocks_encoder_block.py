import numpy as np
import pytest

from kbert.layers.fused_blocks import FusedEncoderBlock
from tests import translation_reference as reference
from tests.check_layer import assign_weights

B, S, L, D, M, N, INNER = 2, 4, 5, 6, 7, 3, 8
DRAW = np.random.default_rng(13)
X = DRAW.normal(size=(B, S, D)).astype("float32")
BERT = DRAW.normal(size=(B, L, M)).astype("float32")
MASK = np.array([[1, 1, 1, 0], [0, 0, 0, 0]], bool)
BERT_MASK = np.array([[1, 1, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
SHAPES = {
    name.removeprefix("block/"): shape
    for name, shape in reference.encoder_block_shapes("block", D, INNER, M).items()
}
INIT = {"num_heads": N, "intermediate_dim": INNER, "activation": "relu", "epsilon": 1e-6}
INPUTS = (X, BERT, MASK[:, None, None], BERT_MASK[:, None, None])


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_numbers(norm):
    layer = FusedEncoderBlock(**INIT, norm=norm, drop_net=0.5, name="block")
    layer.build(X.shape, BERT.shape)
    found = {v.path.removeprefix("block/"): tuple(v.shape) for v in layer.weights}
    assert {k: v for k, v in found.items() if "seed_generator" not in k} == SHAPES
    arrays = reference.random_translation_arrays(SHAPES, seed=3)
    assign_weights(layer, arrays)
    named = {f"block/{name}": array for name, array in arrays.items()}
    architecture = reference.Architecture(N, 1, 0, norm, "relu", 1e-6)
    for weights in ((0.5, 0.5), (1.0, 0.0), (0.0, 1.0)):
        layer.attention_residual.drop_net.forced = weights
        bert = reference.BertMemory(BERT, BERT_MASK, weights)
        wanted = reference.encoder_block(X, named, "block", architecture, MASK, bert)
        np.testing.assert_allclose(layer(*INPUTS), wanted, atol=2e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "mixed_bfloat16"])
def test_a_wholly_masked_row_gives_numbers(dtype):
    layer = FusedEncoderBlock(**INIT, dtype=dtype)
    layer.build(X.shape, BERT.shape)
    found = np.asarray(layer(*INPUTS), "float32")
    assert found.shape == (B, S, D) and np.isfinite(found).all()


def test_configuration():
    layer = FusedEncoderBlock(**INIT, drop_net=0.3)
    again = FusedEncoderBlock.from_config(layer.get_config())
    assert again.drop_net == 0.3 and again.activation == "relu"
