"""An independent NumPy reference of the Transformer for translation, and of its fusion with BERT.

Sources: Vaswani et al. 2017, "Attention Is All You Need" (sections 3.1 to 3.5); Xiong et al. 2020,
"On Layer Normalization in the Transformer Architecture" (pre-norm, with a norm at the end of each
stack); Zhu et al. 2020, "Incorporating BERT into Neural Machine Translation" (section 4, the fused
blocks and the drop-net).

As in `tests.numpy_reference`: float64, no dropout, no trick, and nothing here knows kbert. Arrays
come in under the canonical names; what is not among them is not there: without
`target_embedding/embeddings` the source's table serves both sides, without `output/kernel` the
output shares the target's table, without `output/bias` it has no bias.

Letters: B batch, T target length, S source length, L length of BERT's input, D width, M width of a
memory, I inner width, V vocabulary, P positions. Masks are bool, True = may attend.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tests import numpy_reference as reference
from tests.numpy_reference import Array, AttentionWeights, float64

Arrays = Mapping[str, Array]
Shapes = dict[str, tuple[int, ...]]
BOTH = (0.5, 0.5)


@dataclass(frozen=True)
class Architecture:
    """What the arrays do not say.

    Attributes:
        num_heads: N.
        encoder_layers: number of encoder blocks.
        decoder_layers: number of decoder blocks.
        norm: "post", or "pre" with `encoder_norm` and `decoder_norm` at the ends of the stacks.
        activation: of the feed-forwards, a name of `tests.numpy_reference.ACTIVATIONS`.
        epsilon: of the norms.
        positions: "interleaved" or "halves" (sinusoids), or "learned" (tables given by the caller).
    """

    num_heads: int
    encoder_layers: int
    decoder_layers: int
    norm: str = "post"
    activation: str = "relu"
    epsilon: float = 1e-12
    positions: str = "interleaved"


# --- sublayers -------------------------------------------------------------------------------


def self_attention_weights(arrays: Arrays, attention: str) -> AttentionWeights:
    """`{attention}/qkv/kernel` (D, 3D) holds query | key | value side by side."""
    query, key, value = np.split(float64(arrays[f"{attention}/qkv/kernel"]), 3, axis=1)
    query_bias, key_bias, value_bias = np.split(float64(arrays[f"{attention}/qkv/bias"]), 3)
    return AttentionWeights(
        query,
        query_bias,
        key,
        key_bias,
        value,
        value_bias,
        float64(arrays[f"{attention}/output/kernel"]),
        float64(arrays[f"{attention}/output/bias"]),
    )


def cross_attention_weights(arrays: Arrays, attention: str) -> AttentionWeights:
    """`{attention}/query/kernel` (D, D), `{attention}/key_value/kernel` (M, 2D): key | value."""
    key, value = np.split(float64(arrays[f"{attention}/key_value/kernel"]), 2, axis=1)
    key_bias, value_bias = np.split(float64(arrays[f"{attention}/key_value/bias"]), 2)
    return AttentionWeights(
        float64(arrays[f"{attention}/query/kernel"]),
        float64(arrays[f"{attention}/query/bias"]),
        key,
        key_bias,
        value,
        value_bias,
        float64(arrays[f"{attention}/output/kernel"]),
        float64(arrays[f"{attention}/output/bias"]),
    )


def attend_to_itself(
    x: Array, arrays: Arrays, attention: str, num_heads: int, mask: Array | None
) -> Array:
    """Multi-head self-attention, output projection included: (B, T, D), mask (B, T, T)."""
    weights = self_attention_weights(arrays, attention)
    return reference.multi_head_attention(x, x, x, weights, num_heads, mask)[0]


def attend_to_memory(
    x: Array,
    memory: Array,
    arrays: Arrays,
    attention: str,
    num_heads: int,
    memory_mask: Array | None,
) -> Array:
    """Multi-head attention to a memory (B, S, M) whose padding mask is (B, S): (B, T, D).

    Where the mask hides the whole memory the output is the output bias alone.
    """
    weights = cross_attention_weights(arrays, attention)
    mask = None if memory_mask is None else reference.key_mask(memory_mask, x.shape[1])
    return reference.multi_head_attention(x, memory, memory, weights, num_heads, mask)[0]


def feed_forward(x: Array, arrays: Arrays, block: str, activation: str) -> Array:
    """The feed-forward of a block: (B, T, D)."""
    names = ("intermediate/kernel", "intermediate/bias", "output/kernel", "output/bias")
    return reference.feed_forward(
        x, *(arrays[f"{block}/feed_forward/{name}"] for name in names), activation
    )


class Sublayers:
    """The residual connections and norms of one block, in the order that `norm` says.

    Post-norm: LayerNorm(x + f(x)). Pre-norm: x + f(LayerNorm(x)).
    """

    def __init__(self, arrays: Arrays, block: str, architecture: Architecture) -> None:
        self.arrays, self.block, self.architecture = arrays, block, architecture

    def normed(self, x: Array, residual: str) -> Array:
        """LayerNorm with the gains of `{block}/{residual}/layer_norm`."""
        name = f"{self.block}/{residual}/layer_norm"
        gamma, beta = self.arrays[f"{name}/gamma"], self.arrays[f"{name}/beta"]
        return reference.layer_norm(x, gamma, beta, self.architecture.epsilon)

    def entered(self, x: Array, residual: str) -> Array:
        """What the sublayer sees of x."""
        return self.normed(x, residual) if self.architecture.norm == "pre" else float64(x)

    def left(self, x: Array, output: Array, residual: str) -> Array:
        """What becomes of x and the sublayer's output."""
        total = float64(x) + output
        return total if self.architecture.norm == "pre" else self.normed(total, residual)

    def feed_forward(self, x: Array) -> Array:
        """The last sublayer of every block."""
        seen = self.entered(x, "feed_forward_residual")
        output = feed_forward(seen, self.arrays, self.block, self.architecture.activation)
        return self.left(x, output, "feed_forward_residual")


# --- blocks ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class BertMemory:
    """BERT's last states of the source (B, L, M), their padding mask (B, L) and (r1, r2)."""

    states: Array
    mask: Array | None = None
    weights: tuple[float, float] = BOTH


def fused(
    x: Array,
    own: Array,
    bert: BertMemory | None,
    arrays: Arrays,
    block: str,
    num_heads: int,
) -> Array:
    """r1 own + r2 Attention(x, H_B, H_B); `own` alone where there is no BERT (Zhu et al., 4.1)."""
    if bert is None:
        return own
    name = f"{block}/bert_attention"
    other = attend_to_memory(x, bert.states, arrays, name, num_heads, bert.mask)
    return bert.weights[0] * own + bert.weights[1] * other


def encoder_block(
    x: Array,
    arrays: Arrays,
    block: str,
    architecture: Architecture,
    padding_mask: Array | None = None,
    bert: BertMemory | None = None,
) -> Array:
    """Self-attention, beside it attention to BERT if there is one, and feed-forward.

    Args:
        x: (B, S, D).
        arrays: canonical names.
        block: for example "encoder_block_0".
        architecture: the rest.
        padding_mask: (B, S), or None.
        bert: what a fused block attends to; None for the plain block.

    Returns:
        (B, S, D).
    """
    sublayers, heads = Sublayers(arrays, block, architecture), architecture.num_heads
    mask = None if padding_mask is None else reference.key_mask(padding_mask, x.shape[1])
    seen = sublayers.entered(x, "attention_residual")
    own = attend_to_itself(seen, arrays, f"{block}/attention", heads, mask)
    output = fused(seen, own, bert, arrays, block, heads)
    return sublayers.feed_forward(sublayers.left(x, output, "attention_residual"))


def decoder_block(
    x: Array,
    memory: Array,
    arrays: Arrays,
    block: str,
    architecture: Architecture,
    memory_mask: Array | None = None,
    padding_mask: Array | None = None,
    bert: BertMemory | None = None,
) -> Array:
    """Causal self-attention, attention to the memory (and to BERT beside it), feed-forward.

    Args:
        x: (B, T, D).
        memory: (B, S, M).
        arrays: canonical names.
        block: for example "decoder_block_0".
        architecture: the rest.
        memory_mask: (B, S), or None.
        padding_mask: of the target, (B, T), beside the causal mask; or None.
        bert: what a fused block attends to; None for the plain block.

    Returns:
        (B, T, D).
    """
    sublayers, heads = Sublayers(arrays, block, architecture), architecture.num_heads
    batch, length, _ = x.shape
    mask = np.stack([reference.causal_mask(length)] * batch) if batch else None
    if padding_mask is not None and batch:
        mask = mask & reference.key_mask(padding_mask, length)
    seen = sublayers.entered(x, "self_attention_residual")
    output = attend_to_itself(seen, arrays, f"{block}/self_attention", heads, mask)
    x = sublayers.left(x, output, "self_attention_residual")
    seen = sublayers.entered(x, "cross_attention_residual")
    name = f"{block}/cross_attention"
    own = attend_to_memory(seen, memory, arrays, name, heads, memory_mask)
    output = fused(seen, own, bert, arrays, block, heads)
    return sublayers.feed_forward(sublayers.left(x, output, "cross_attention_residual"))


def encoder_block_scores(
    x: Array,
    arrays: Arrays,
    block: str,
    architecture: Architecture,
    padding_mask: Array | None = None,
) -> Array:
    """The probabilities (B, N, S, S) of the self-attention in `encoder_block`."""
    seen = Sublayers(arrays, block, architecture).entered(x, "attention_residual")
    weights = self_attention_weights(arrays, f"{block}/attention")
    mask = None if padding_mask is None else reference.key_mask(padding_mask, x.shape[1])
    heads = architecture.num_heads
    return reference.multi_head_attention(seen, seen, seen, weights, heads, mask)[1]


def decoder_block_scores(
    x: Array,
    memory: Array,
    arrays: Arrays,
    block: str,
    architecture: Architecture,
    memory_mask: Array | None = None,
) -> Array:
    """The probabilities (B, N, T, S) of the attention to the memory in `decoder_block`."""
    sublayers, heads = Sublayers(arrays, block, architecture), architecture.num_heads
    batch, length, _ = x.shape
    mask = np.stack([reference.causal_mask(length)] * batch)
    seen = sublayers.entered(x, "self_attention_residual")
    output = attend_to_itself(seen, arrays, f"{block}/self_attention", heads, mask)
    x = sublayers.left(x, output, "self_attention_residual")
    seen = sublayers.entered(x, "cross_attention_residual")
    weights = cross_attention_weights(arrays, f"{block}/cross_attention")
    mask = None if memory_mask is None else reference.key_mask(memory_mask, length)
    return reference.multi_head_attention(seen, memory, memory, weights, heads, mask)[1]


def drop_net_weights(draw: float, rate: float) -> tuple[float, float]:
    """(r1, r2) of a fused block in training, for a draw U from [0, 1) (Zhu et al., 4.2).

    U < p/2: (1, 0); U > 1 - p/2: (0, 1); otherwise, as always at inference, (1/2, 1/2).
    """
    if draw < rate / 2:
        return (1.0, 0.0)
    return (0.0, 1.0) if draw > 1.0 - rate / 2 else BOTH


# --- the whole model -------------------------------------------------------------------------


def position_table(positions: str, length: int, width: int, learned: Array | None) -> Array:
    """The encodings of the first positions: (length, D)."""
    if positions == "learned":
        return float64(learned)[:length]
    tables = {
        "interleaved": reference.sinusoidal_positions,
        "halves": reference.sinusoidal_positions_in_halves,
    }
    return tables[positions](length, width)


def embedded(
    token_ids: Array, table: Array, architecture: Architecture, learned: Array | None = None
) -> Array:
    """sqrt(D) table[token] + position (Vaswani et al., 3.4 and 3.5): (B, T) -> (B, T, D)."""
    table, (batch, length) = float64(table), np.shape(token_ids)
    width = table.shape[1]
    waves = position_table(architecture.positions, length, width, learned)
    output = np.zeros((batch, length, width))
    for b in range(batch):
        for t in range(length):
            output[b, t] = math.sqrt(width) * table[token_ids[b][t]] + waves[t]
    return output


def target_table(arrays: Arrays) -> Array:
    """The embeddings of the target side (V, D)."""
    tied = float64(arrays["source_embedding/embeddings"])
    return float64(arrays.get("target_embedding/embeddings", tied))


def _end_of_stack(x: Array, arrays: Arrays, norm: str, architecture: Architecture) -> Array:
    if architecture.norm == "post":
        return x
    gamma, beta = arrays[f"{norm}/gamma"], arrays[f"{norm}/beta"]
    return reference.layer_norm(x, gamma, beta, architecture.epsilon)


def encode(
    arrays: Arrays,
    source_ids: Array,
    architecture: Architecture,
    padding_mask: Array | None = None,
    bert: BertMemory | None = None,
    learned_positions: Array | None = None,
) -> Array:
    """The encoder (Vaswani et al., 3.1).

    Args:
        arrays: canonical names.
        source_ids: (B, S) int.
        architecture: the rest.
        padding_mask: (B, S), True = real token; None = all.
        bert: for the fused encoder, where every block takes the same (r1, r2).
        learned_positions: (P, D) where `architecture.positions` is "learned".

    Returns:
        The memory (B, S, D).
    """
    table = arrays["source_embedding/embeddings"]
    x = embedded(source_ids, table, architecture, learned_positions)
    for i in range(architecture.encoder_layers):
        x = encoder_block(x, arrays, f"encoder_block_{i}", architecture, padding_mask, bert)
    return _end_of_stack(x, arrays, "encoder_norm", architecture)


def decode(
    arrays: Arrays,
    target_ids: Array,
    memory: Array,
    architecture: Architecture,
    memory_mask: Array | None = None,
    padding_mask: Array | None = None,
    bert: BertMemory | None = None,
    learned_positions: Array | None = None,
) -> Array:
    """The decoder over a whole target that begins with the start token, and the output layer.

    Args:
        arrays: canonical names.
        target_ids: (B, T) int.
        memory: (B, S, D).
        architecture: the rest.
        memory_mask: (B, S), or None.
        padding_mask: (B, T), or None.
        bert: for the fused decoder, where every block takes the same (r1, r2).
        learned_positions: (P, D) where `architecture.positions` is "learned".

    Returns:
        Logits (B, T, V); position t speaks of the token after t.
    """
    table = target_table(arrays)
    x = embedded(target_ids, table, architecture, learned_positions)
    for i in range(architecture.decoder_layers):
        block = f"decoder_block_{i}"
        x = decoder_block(x, memory, arrays, block, architecture, memory_mask, padding_mask, bert)
    x = _end_of_stack(x, arrays, "decoder_norm", architecture)
    return reference.dense(x, arrays.get("output/kernel", table.T), arrays.get("output/bias"))


def transformer(
    arrays: Arrays,
    source_ids: Array,
    target_ids: Array,
    architecture: Architecture,
    source_mask: Array | None = None,
    target_mask: Array | None = None,
    bert: BertMemory | None = None,
    learned_positions: tuple[Array | None, Array | None] = (None, None),
) -> Array:
    """Source and target to logits (B, T, V): `encode`, then `decode`.

    `learned_positions` holds the table of the source and the one of the target.
    """
    memory = encode(arrays, source_ids, architecture, source_mask, bert, learned_positions[0])
    return decode(
        arrays,
        target_ids,
        memory,
        architecture,
        source_mask,
        target_mask,
        bert,
        learned_positions[1],
    )


def encoder_scores(
    arrays: Arrays,
    source_ids: Array,
    architecture: Architecture,
    padding_mask: Array | None = None,
    bert: BertMemory | None = None,
) -> list[Array]:
    """The self-attention (B, N, S, S) of each encoder block; arguments as in `encode`."""
    x = embedded(source_ids, arrays["source_embedding/embeddings"], architecture)
    scores = []
    for i in range(architecture.encoder_layers):
        block = f"encoder_block_{i}"
        scores.append(encoder_block_scores(x, arrays, block, architecture, padding_mask))
        x = encoder_block(x, arrays, block, architecture, padding_mask, bert)
    return scores


def memory_scores(
    arrays: Arrays,
    target_ids: Array,
    memory: Array,
    architecture: Architecture,
    memory_mask: Array | None = None,
    bert: BertMemory | None = None,
) -> list[Array]:
    """The attention to the memory (B, N, T, S) of each decoder block; arguments as in `decode`."""
    x = embedded(target_ids, target_table(arrays), architecture)
    scores = []
    for i in range(architecture.decoder_layers):
        block = f"decoder_block_{i}"
        scores.append(decoder_block_scores(x, memory, arrays, block, architecture, memory_mask))
        x = decoder_block(x, memory, arrays, block, architecture, memory_mask, None, bert)
    return scores


# --- shapes ----------------------------------------------------------------------------------


def dense_shapes(name: str, inputs: int, outputs: int) -> Shapes:
    """Kernel and bias of a projection."""
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def norm_shapes(name: str, width: int) -> Shapes:
    """Gain and offset of a norm."""
    return {f"{name}/gamma": (width,), f"{name}/beta": (width,)}


def self_attention_shapes(name: str, width: int) -> Shapes:
    """The arrays of `attend_to_itself`."""
    return dense_shapes(f"{name}/qkv", width, 3 * width) | dense_shapes(
        f"{name}/output", width, width
    )


def cross_attention_shapes(name: str, width: int, memory_width: int) -> Shapes:
    """The arrays of `attend_to_memory`."""
    return {
        **dense_shapes(f"{name}/query", width, width),
        **dense_shapes(f"{name}/key_value", memory_width, 2 * width),
        **dense_shapes(f"{name}/output", width, width),
    }


def feed_forward_shapes(block: str, width: int, inner: int) -> Shapes:
    """The arrays of `feed_forward` and of the norm of its residual."""
    return {
        **dense_shapes(f"{block}/feed_forward/intermediate", width, inner),
        **dense_shapes(f"{block}/feed_forward/output", inner, width),
        **norm_shapes(f"{block}/feed_forward_residual/layer_norm", width),
    }


def encoder_block_shapes(block: str, width: int, inner: int, bert_dim: int | None = None) -> Shapes:
    """The arrays of `encoder_block`."""
    shapes = {
        **self_attention_shapes(f"{block}/attention", width),
        **norm_shapes(f"{block}/attention_residual/layer_norm", width),
        **feed_forward_shapes(block, width, inner),
    }
    if bert_dim is not None:
        shapes |= cross_attention_shapes(f"{block}/bert_attention", width, bert_dim)
    return shapes


def decoder_block_shapes(
    block: str,
    width: int,
    inner: int,
    bert_dim: int | None = None,
    memory_width: int | None = None,
) -> Shapes:
    """The arrays of `decoder_block`; the memory is as wide as the block unless it is given."""
    shapes = {
        **self_attention_shapes(f"{block}/self_attention", width),
        **norm_shapes(f"{block}/self_attention_residual/layer_norm", width),
        **cross_attention_shapes(f"{block}/cross_attention", width, memory_width or width),
        **norm_shapes(f"{block}/cross_attention_residual/layer_norm", width),
        **feed_forward_shapes(block, width, inner),
    }
    if bert_dim is not None:
        shapes |= cross_attention_shapes(f"{block}/bert_attention", width, bert_dim)
    return shapes


def translation_array_shapes(
    vocabulary_size: int,
    hidden_dim: int,
    intermediate_dim: int,
    encoder_layers: int,
    decoder_layers: int,
    target_vocabulary_size: int | None = None,
    tied_output: bool = True,
    output_bias: bool = False,
    norm: str = "post",
    bert_dim: int | None = None,
) -> Shapes:
    """The canonical names of a Transformer and the shape of each.

    Args:
        vocabulary_size: V of the source, and of the target where they share a table.
        hidden_dim: D.
        intermediate_dim: I.
        encoder_layers: number of encoder blocks.
        decoder_layers: number of decoder blocks.
        target_vocabulary_size: V of a target with a table of its own; None for one table.
        tied_output: whether the output layer is the target's table.
        output_bias: whether the output layer has a bias.
        norm: "pre" adds the two norms at the ends.
        bert_dim: width of BERT's states, for fused blocks; None for plain ones.

    Returns:
        Name -> shape.
    """
    d, inner = hidden_dim, intermediate_dim
    shapes: Shapes = {"source_embedding/embeddings": (vocabulary_size, d)}
    if target_vocabulary_size is not None:
        shapes["target_embedding/embeddings"] = (target_vocabulary_size, d)
    for i in range(encoder_layers):
        shapes |= encoder_block_shapes(f"encoder_block_{i}", d, inner, bert_dim)
    for i in range(decoder_layers):
        shapes |= decoder_block_shapes(f"decoder_block_{i}", d, inner, bert_dim)
    if norm == "pre":
        shapes |= norm_shapes("encoder_norm", d) | norm_shapes("decoder_norm", d)
    outputs = target_vocabulary_size or vocabulary_size
    if not tied_output:
        shapes["output/kernel"] = (d, outputs)
    if output_bias:
        shapes["output/bias"] = (outputs,)
    return shapes


def random_translation_arrays(shapes: Shapes, seed: int = 0) -> dict[str, Array]:
    """Numbers for each shape, as `tests.numpy_reference.random_arrays` draws them."""
    return reference.random_arrays(shapes, seed)


def count_parameters(shapes: Shapes) -> int:
    """How many numbers the arrays hold together."""
    return sum(math.prod(shape) for shape in shapes.values())
