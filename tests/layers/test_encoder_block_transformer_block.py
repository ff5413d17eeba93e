"""What blocks share. The numbers of each are tested with it; here is what states rely on."""

import pytest

from kbert.layers.decoder_block import DecoderBlock
from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.fused_blocks import FusedDecoderBlock, FusedEncoderBlock

STATES, BERT = (None, None, 6), (None, None, 7)
ENCODER = ["attention", "attention_residual", "feed_forward", "feed_forward_residual"]
DECODER = [
    "self_attention",
    "self_attention_residual",
    "cross_attention",
    "cross_attention_residual",
    "feed_forward",
    "feed_forward_residual",
]
ORDERS = [
    (EncoderBlock, {}, [STATES], ENCODER),
    (FusedEncoderBlock, {}, [STATES, BERT], [*ENCODER, "bert_attention"]),
    (DecoderBlock, {}, [STATES, STATES], DECODER),
    (FusedDecoderBlock, {}, [STATES, (STATES, BERT)], [*DECODER, "bert_attention"]),
]


@pytest.mark.parametrize("kind, options, shapes, sublayers", ORDERS)
def test_weights_come_in_the_order_of_the_sublayers(kind, options, shapes, sublayers):
    """The saved state of an optimizer knows the weights by this order alone."""
    block = kind(num_heads=2, intermediate_dim=8, **options)
    block.build(*shapes)
    names = [weight.path.split("/")[1] for weight in block.trainable_weights]
    assert list(dict.fromkeys(names)) == sublayers


@pytest.mark.parametrize("kind, attention", [(EncoderBlock, ""), (DecoderBlock, "self_")])
def test_arguments_reach_the_sublayers(kind, attention):
    block = kind(2, 8, 0.2, 0.3, "tanh", "pre", 1e-4, "zeros")
    inner = getattr(block, f"{attention}attention")
    assert (inner.num_heads, inner.dropout) == (2, 0.3)
    assert (block.feed_forward.intermediate_dim, block.feed_forward.activation) == (8, "tanh")
    for residual in (getattr(block, f"{attention}attention_residual"), block.feed_forward_residual):
        assert (residual.dropout, residual.norm, residual.epsilon) == (0.2, "pre", 1e-4)
    block.build(*[STATES] * (1 if kind is EncoderBlock else 2))
    kernels = [weight for weight in block.weights if weight.path.endswith("kernel")]
    assert len(kernels) == (4 if kind is EncoderBlock else 7)
    assert not any(kernel.numpy().any() for kernel in kernels)
