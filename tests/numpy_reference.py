"""An independent NumPy reference of BERT and its training, written from the papers.

Sources: Vaswani et al. 2017, "Attention Is All You Need" (sections 3.2 to 3.5); Devlin et al. 2018,
"BERT" (section 3 and appendix A.2); Ba et al. 2016, "Layer Normalization"; Hendrycks and Gimpel
2016, "Gaussian Error Linear Units"; Loshchilov and Hutter 2019, "Decoupled Weight Decay
Regularization" (algorithm 2); Kingma and Ba 2015, "Adam" (algorithm 1); Pascanu et al. 2013 (norm
clipping); Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture" (pre-norm).

Everything is float64 and written to be read beside the formulas: one head at a time, one step at a
time, no trick for speed or for numerical range. Nothing here knows kbert; arrays come in under the
canonical names of its checkpoints.

Letters: B batch, T query length, S key length, N heads, H head size, D width, I inner width,
V vocabulary, P positions, C classes. Masks are bool, True = may attend.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


def float64(x: object) -> Array:
    """Anything array-like in double precision."""
    return np.asarray(x, dtype=np.float64)


# --- activations -----------------------------------------------------------------------------


def erf(x: Array) -> Array:
    """The error function, element by element, from the C library."""
    return np.vectorize(math.erf, otypes=[np.float64])(float64(x))


def gelu(x: Array) -> Array:
    """Exact GELU, x Phi(x) with the normal distribution Phi (Hendrycks and Gimpel, section 2)."""
    x = float64(x)
    return x * 0.5 * (1.0 + erf(x / math.sqrt(2.0)))


def gelu_tanh(x: Array) -> Array:
    """GELU by the tanh formula of the same section, with the constant 0.044715."""
    x = float64(x)
    return 0.5 * x * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x**3)))


def quick_gelu(x: Array) -> Array:
    """x sigmoid(1.702 x), the other approximation of the same section."""
    x = float64(x)
    return x / (1.0 + np.exp(-1.702 * x))


def relu(x: Array) -> Array:
    """max(0, x)."""
    return np.maximum(float64(x), 0.0)


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_approximate": gelu_tanh,
    "quick_gelu": quick_gelu,
    "relu": relu,
    "tanh": lambda x: np.tanh(float64(x)),
    "linear": float64,
}


def softmax(scores: Array) -> Array:
    """Softmax over the last axis."""
    scores = float64(scores)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def log_softmax(scores: Array) -> Array:
    """The logarithm of the softmax over the last axis."""
    scores = float64(scores)
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


# --- masks -----------------------------------------------------------------------------------


def causal_mask(length: int) -> Array:
    """Position t may attend to s <= t: (T, T) bool."""
    return np.array([[s <= t for s in range(length)] for t in range(length)])


def key_mask(padding_mask: Array, query_length: int) -> Array:
    """A padding mask of the keys (B, S) for every query: (B, T, S) bool."""
    padding_mask = np.asarray(padding_mask, dtype=bool)
    return np.stack([padding_mask] * query_length, axis=1)


# --- attention -------------------------------------------------------------------------------


def attention_probabilities(query: Array, key: Array, mask: Array | None = None) -> Array:
    """softmax(Q K^T / sqrt(H)) over the keys that may be attended (Vaswani et al., 3.2.1).

    Args:
        query: (T, H), one head of one sentence.
        key: (S, H).
        mask: (T, S) bool, or None.

    Returns:
        (T, S). A query that may attend to nothing has probabilities zero, never NaN.
    """
    query, key = float64(query), float64(key)
    scores = query @ key.T / math.sqrt(query.shape[-1])
    if mask is None:
        return softmax(scores)
    probabilities = np.zeros_like(scores)
    for t, allowed in enumerate(np.asarray(mask, dtype=bool)):
        if allowed.any():
            probabilities[t, allowed] = softmax(scores[t, allowed])
    return probabilities


def scaled_dot_product_attention(
    query: Array, key: Array, value: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """The weighted sum of the values, for a batch of heads.

    Args:
        query: (B, N, T, H).
        key: (B, N, S, H).
        value: (B, N, S, H).
        mask: bool, to be broadcast to (B, N, T, S): (B, T, S) is taken for every head. None = all.

    Returns:
        The context (B, N, T, H), zero where a query may attend to nothing, and the
        probabilities (B, N, T, S).
    """
    batch, heads, query_length, _ = query.shape
    key_length = key.shape[2]
    if mask is None:
        mask = np.ones((batch, query_length, key_length), dtype=bool)
    mask = np.asarray(mask, dtype=bool)
    if mask.ndim == 3:
        mask = mask[:, None]
    mask = np.broadcast_to(mask, (batch, heads, query_length, key_length))
    probabilities = np.zeros((batch, heads, query_length, key_length))
    context = np.zeros((batch, heads, query_length, value.shape[-1]))
    for b in range(batch):
        for n in range(heads):
            probabilities[b, n] = attention_probabilities(query[b, n], key[b, n], mask[b, n])
            context[b, n] = probabilities[b, n] @ float64(value[b, n])
    return context, probabilities


@dataclass(frozen=True)
class AttentionWeights:
    """The plain matrices of one multi-head attention.

    Head n owns the columns n H to (n + 1) H of the query, key and value matrices, and the same
    rows of the output matrix. Widths: query_kernel (D_query, D), key_kernel (D_key, D),
    value_kernel (D_value, D), output_kernel (D, D_out), biases (D) and (D_out).
    """

    query_kernel: Array
    query_bias: Array
    key_kernel: Array
    key_bias: Array
    value_kernel: Array
    value_bias: Array
    output_kernel: Array
    output_bias: Array


def split_heads(x: Array, num_heads: int) -> Array:
    """(B, T, D) -> (B, N, T, H)."""
    width = x.shape[-1] // num_heads
    return np.stack([x[..., n * width : (n + 1) * width] for n in range(num_heads)], axis=1)


def merge_heads(x: Array) -> Array:
    """(B, N, T, H) -> (B, T, D)."""
    return np.concatenate([x[:, n] for n in range(x.shape[1])], axis=-1)


def multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    weights: AttentionWeights,
    num_heads: int,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    """Concat(head_1 ... head_N) W_O (Vaswani et al., 3.2.2), with biases as in BERT.

    Args:
        query: (B, T, D_query).
        key: (B, S, D_key).
        value: (B, S, D_value).
        weights: the matrices.
        num_heads: N.
        mask: bool (B, T, S) or (B, N, T, S), or None.

    Returns:
        The output (B, T, D_out) and the probabilities (B, N, T, S). Where a query may attend to
        nothing the output is the output bias alone.
    """
    q = split_heads(dense(query, weights.query_kernel, weights.query_bias), num_heads)
    k = split_heads(dense(key, weights.key_kernel, weights.key_bias), num_heads)
    v = split_heads(dense(value, weights.value_kernel, weights.value_bias), num_heads)
    context, probabilities = scaled_dot_product_attention(q, k, v, mask)
    output = dense(merge_heads(context), weights.output_kernel, weights.output_bias)
    return output, probabilities


# --- the other sublayers ---------------------------------------------------------------------


def dense(x: Array, kernel: Array, bias: Array | None = None) -> Array:
    """x W + b: (..., D_in), (D_in, D_out), (D_out) -> (..., D_out)."""
    y = float64(x) @ float64(kernel)
    return y if bias is None else y + float64(bias)


def layer_norm(x: Array, gamma: Array, beta: Array, epsilon: float = 1e-12) -> Array:
    """(x - mean) / sqrt(variance + epsilon) gamma + beta over the last axis (Ba et al., 3).

    The variance is the biased one: divided by D. Shapes: x (..., D), gamma and beta (D).
    """
    x = float64(x)
    width = x.shape[-1]
    mean = x.sum(axis=-1, keepdims=True) / width
    variance = ((x - mean) ** 2).sum(axis=-1, keepdims=True) / width
    return (x - mean) / np.sqrt(variance + epsilon) * float64(gamma) + float64(beta)


def feed_forward(
    x: Array,
    inner_kernel: Array,
    inner_bias: Array,
    output_kernel: Array,
    output_bias: Array,
    activation: str = "gelu",
) -> Array:
    """activation(x W_1 + b_1) W_2 + b_2 (Vaswani et al., 3.3): (B, T, D) -> (B, T, D)."""
    inner = ACTIVATIONS[activation](dense(x, inner_kernel, inner_bias))
    return dense(inner, output_kernel, output_bias)


def sinusoidal_positions(length: int, width: int) -> Array:
    """PE(p, 2i) = sin(p / 10000^(2i/D)), PE(p, 2i+1) = cos(same) (Vaswani et al., 3.5): (P, D)."""
    table = np.zeros((length, width))
    for position in range(length):
        for column in range(width):
            i = column // 2
            angle = position / 10000 ** (2 * i / width)
            table[position, column] = math.sin(angle) if column % 2 == 0 else math.cos(angle)
    return table


def sinusoidal_positions_in_halves(length: int, width: int) -> Array:
    """The same numbers, sines in the first half of the columns, cosines in the second: (P, D)."""
    table = sinusoidal_positions(length, width)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=1)


def sinusoidal_positions_tensor2tensor(length: int, width: int) -> Array:
    """The halves variant whose rates run from 1 to 1/10000 inclusive: (P, D), D even.

    The exponent is i / (D/2 - 1) where the paper has i / (D/2): so in the paper's first code
    (tensor2tensor) and in toolkits that followed it.
    """
    half = width // 2
    table = np.zeros((length, width))
    for position in range(length):
        for i in range(half):
            angle = position * 10000 ** (-i / max(half - 1, 1))
            table[position, i] = math.sin(angle)
            table[position, half + i] = math.cos(angle)
    return table


def post_norm_residual(
    x: Array, sublayer_output: Array, gamma: Array, beta: Array, epsilon: float = 1e-12
) -> Array:
    """LayerNorm(x + Sublayer(x)) (Vaswani et al., 3.1), as in BERT."""
    return layer_norm(float64(x) + float64(sublayer_output), gamma, beta, epsilon)


def pre_norm_residual(
    x: Array,
    sublayer: Callable[[Array], Array],
    gamma: Array,
    beta: Array,
    epsilon: float = 1e-12,
) -> Array:
    """x + Sublayer(LayerNorm(x)) (Xiong et al., section 3)."""
    return float64(x) + float64(sublayer(layer_norm(x, gamma, beta, epsilon)))


# --- BERT ------------------------------------------------------------------------------------


def bert_embeddings(
    token_ids: Array,
    segment_ids: Array,
    arrays: Mapping[str, Array],
    epsilon: float = 1e-12,
) -> Array:
    """LayerNorm(token + position + segment) (Devlin et al., section 3, figure 2).

    Args:
        token_ids: (B, T) int.
        segment_ids: (B, T) int.
        arrays: canonical names `embeddings/...`.
        epsilon: of the norm.

    Returns:
        (B, T, D).
    """
    tokens = float64(arrays["embeddings/token_embedding/embeddings"])
    positions = float64(arrays["embeddings/position_embedding/embeddings"])
    segments = float64(arrays["embeddings/segment_embedding/embeddings"])
    batch, length = np.shape(token_ids)
    total = np.zeros((batch, length, tokens.shape[1]))
    for b in range(batch):
        for t in range(length):
            total[b, t] = tokens[token_ids[b][t]] + positions[t] + segments[segment_ids[b][t]]
    gamma = arrays["embeddings/layer_norm/gamma"]
    return layer_norm(total, gamma, arrays["embeddings/layer_norm/beta"], epsilon)


def block_attention_weights(arrays: Mapping[str, Array], block: str) -> AttentionWeights:
    """The matrices of a block's self-attention; `qkv` holds query | key | value side by side."""
    kernel = float64(arrays[f"{block}/attention/qkv/kernel"])  # (D, 3D)
    bias = float64(arrays[f"{block}/attention/qkv/bias"])  # (3D)
    width = kernel.shape[1] // 3
    return AttentionWeights(
        query_kernel=kernel[:, :width],
        query_bias=bias[:width],
        key_kernel=kernel[:, width : 2 * width],
        key_bias=bias[width : 2 * width],
        value_kernel=kernel[:, 2 * width :],
        value_bias=bias[2 * width :],
        output_kernel=float64(arrays[f"{block}/attention/output/kernel"]),
        output_bias=float64(arrays[f"{block}/attention/output/bias"]),
    )


def encoder_block(
    x: Array,
    arrays: Mapping[str, Array],
    block: str,
    num_heads: int,
    mask: Array | None = None,
    activation: str = "gelu",
    epsilon: float = 1e-12,
    pre_norm: bool = False,
) -> tuple[Array, Array]:
    """Self-attention and feed-forward, each with residual and norm (Vaswani et al., 3.1).

    Args:
        x: (B, T, D).
        arrays: canonical names `{block}/attention/qkv/kernel` and so on.
        block: for example "encoder_block_0".
        num_heads: N.
        mask: bool (B, T, T), or None.
        activation: of the feed-forward, a name of `ACTIVATIONS`.
        epsilon: of the norms.
        pre_norm: norms in front of the sublayers instead of behind the sums.

    Returns:
        The output (B, T, D) and the attention probabilities (B, N, T, T).
    """
    weights = block_attention_weights(arrays, block)
    attention_norm = (
        arrays[f"{block}/attention_residual/layer_norm/gamma"],
        arrays[f"{block}/attention_residual/layer_norm/beta"],
        epsilon,
    )
    feed_forward_norm = (
        arrays[f"{block}/feed_forward_residual/layer_norm/gamma"],
        arrays[f"{block}/feed_forward_residual/layer_norm/beta"],
        epsilon,
    )

    def second_sublayer(h: Array) -> Array:
        return feed_forward(
            h,
            arrays[f"{block}/feed_forward/intermediate/kernel"],
            arrays[f"{block}/feed_forward/intermediate/bias"],
            arrays[f"{block}/feed_forward/output/kernel"],
            arrays[f"{block}/feed_forward/output/bias"],
            activation,
        )

    if pre_norm:
        normed = layer_norm(x, *attention_norm)
        attended, probabilities = multi_head_attention(
            normed, normed, normed, weights, num_heads, mask
        )
        h = float64(x) + attended
        return pre_norm_residual(h, second_sublayer, *feed_forward_norm), probabilities
    attended, probabilities = multi_head_attention(x, x, x, weights, num_heads, mask)
    h = post_norm_residual(x, attended, *attention_norm)
    return post_norm_residual(h, second_sublayer(h), *feed_forward_norm), probabilities


@dataclass(frozen=True)
class BertOutputs:
    """What `bert` computes: shapes (B, T, D), (B, D), layers + 1 of (B, T, D), (B, N, T, T)."""

    sequence_output: Array
    pooled_output: Array
    hidden_states: tuple[Array, ...]
    attention_probabilities: tuple[Array, ...]


def bert(
    arrays: Mapping[str, Array],
    token_ids: Array,
    num_layers: int,
    num_heads: int,
    segment_ids: Array | None = None,
    padding_mask: Array | None = None,
    activation: str = "gelu",
    epsilon: float = 1e-12,
    causal: bool = False,
) -> BertOutputs:
    """The whole of BERT without dropout (Devlin et al., section 3).

    Args:
        arrays: every canonical name, `embeddings/...`, `encoder_block_{i}/...`, `pooler/...`.
        token_ids: (B, T) int.
        num_layers: number of blocks.
        num_heads: N.
        segment_ids: (B, T) int; zeros when None.
        padding_mask: (B, T) bool, True = real token; all True when None.
        activation: of the feed-forwards.
        epsilon: of the norms.
        causal: position t may attend to s <= t (the left-to-right model of Devlin et al., 5.1).

    Returns:
        `BertOutputs`; `hidden_states[0]` is the output of the embeddings and the last one is the
        sequence output. The pooled output is tanh(W h + b) of the first position; of a causal
        model, of the last real one, or of the first where there is none.
    """
    token_ids = np.asarray(token_ids)
    if segment_ids is None:
        segment_ids = np.zeros_like(token_ids)
    if padding_mask is None:
        padding_mask = np.ones(token_ids.shape, dtype=bool)
    mask = key_mask(padding_mask, token_ids.shape[1])
    if causal:
        mask = mask & causal_mask(token_ids.shape[1])
    states = [bert_embeddings(token_ids, segment_ids, arrays, epsilon)]
    probabilities = []
    for i in range(num_layers):
        state, attention = encoder_block(
            states[-1], arrays, f"encoder_block_{i}", num_heads, mask, activation, epsilon
        )
        states.append(state)
        probabilities.append(attention)
    summed_up = states[-1][:, 0]
    if causal:
        places = [max(np.flatnonzero(row), default=0) for row in np.asarray(padding_mask)]
        summed_up = np.stack([states[-1][b, place] for b, place in enumerate(places)])
    pooled = np.tanh(dense(summed_up, arrays["pooler/kernel"], arrays["pooler/bias"]))
    return BertOutputs(states[-1], pooled, tuple(states), tuple(probabilities))


def albert(
    arrays: Mapping[str, Array],
    token_ids: Array,
    blocks: Sequence[int],
    num_heads: int,
    segment_ids: Array,
    padding_mask: Array,
    activation: str = "gelu_approximate",
) -> BertOutputs:
    """ALBERT without dropout (Lan et al. 2019, section 3.1; google-research/albert, modeling.py).

    Args:
        arrays: `embeddings/...` of width E, `embedding_projection/...` (E, D),
            `encoder_block_{i}/...`, `pooler/...`.
        token_ids: (B, T) int.
        blocks: the block of each layer.
        num_heads: N.
        segment_ids: (B, T) int.
        padding_mask: (B, T) bool, True = real token.
        activation: of the feed-forwards.

    Returns:
        `BertOutputs`; `hidden_states[0]` are the projected embeddings.
    """
    kernel = arrays["embedding_projection/kernel"]
    narrow = bert_embeddings(token_ids, segment_ids, arrays)
    states = [dense(narrow, kernel, arrays["embedding_projection/bias"])]
    mask = key_mask(padding_mask, np.shape(token_ids)[1])
    probabilities = []
    for block in blocks:
        state, attention = encoder_block(
            states[-1], arrays, f"encoder_block_{block}", num_heads, mask, activation
        )
        states.append(state)
        probabilities.append(attention)
    pooled = np.tanh(dense(states[-1][:, 0], arrays["pooler/kernel"], arrays["pooler/bias"]))
    return BertOutputs(states[-1], pooled, tuple(states), tuple(probabilities))


def masked_token_logits(
    states: Array,
    head: Mapping[str, Array],
    table: Array,
    activation: str = "gelu",
    epsilon: float = 1e-12,
) -> Array:
    """LayerNorm(activation(h W + b)) E^T + c, with the token embeddings E (Devlin et al., 3.1).

    The form of the head is that of google-research/bert, `get_masked_lm_output`.

    Args:
        states: (..., D).
        head: `transform/kernel` (D, D), `transform/bias`, `layer_norm/gamma`, `layer_norm/beta`
            and `output/bias` (V).
        table: E (V, D).
        activation: of the transform.
        epsilon: of the norm.

    Returns:
        (..., V).
    """
    inner = ACTIVATIONS[activation](dense(states, head["transform/kernel"], head["transform/bias"]))
    normed = layer_norm(inner, head["layer_norm/gamma"], head["layer_norm/beta"], epsilon)
    return dense(normed, float64(table).T, head["output/bias"])


def bert_array_shapes(
    vocabulary_size: int,
    hidden_dim: int,
    intermediate_dim: int,
    num_layers: int,
    max_sequence_length: int,
    num_segments: int = 2,
) -> dict[str, tuple[int, ...]]:
    """The canonical names of a BERT and the shape of each."""
    d, inner = hidden_dim, intermediate_dim
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings/token_embedding/embeddings": (vocabulary_size, d),
        "embeddings/position_embedding/embeddings": (max_sequence_length, d),
        "embeddings/segment_embedding/embeddings": (num_segments, d),
        "embeddings/layer_norm/gamma": (d,),
        "embeddings/layer_norm/beta": (d,),
    }
    for i in range(num_layers):
        block = f"encoder_block_{i}"
        shapes |= {
            f"{block}/attention/qkv/kernel": (d, 3 * d),
            f"{block}/attention/qkv/bias": (3 * d,),
            f"{block}/attention/output/kernel": (d, d),
            f"{block}/attention/output/bias": (d,),
            f"{block}/attention_residual/layer_norm/gamma": (d,),
            f"{block}/attention_residual/layer_norm/beta": (d,),
            f"{block}/feed_forward/intermediate/kernel": (d, inner),
            f"{block}/feed_forward/intermediate/bias": (inner,),
            f"{block}/feed_forward/output/kernel": (inner, d),
            f"{block}/feed_forward/output/bias": (d,),
            f"{block}/feed_forward_residual/layer_norm/gamma": (d,),
            f"{block}/feed_forward_residual/layer_norm/beta": (d,),
        }
    return shapes | {"pooler/kernel": (d, d), "pooler/bias": (d,)}


def random_arrays(shapes: Mapping[str, tuple[int, ...]], seed: int = 0) -> dict[str, Array]:
    """Normal numbers of deviation 0.3 for each shape; gains around 1, so that no term vanishes."""
    draw = np.random.default_rng(seed)
    return {
        name: draw.normal(1.0 if name.endswith("gamma") else 0.0, 0.3, shape)
        for name, shape in shapes.items()
    }


# --- training --------------------------------------------------------------------------------


def cross_entropy(
    logits: Array, targets: Array, class_weights: Sequence[float] | None = None
) -> Array:
    """-sum_c w_c y_c log softmax(logits)_c, one number a row, not averaged.

    Args:
        logits: (B, C).
        targets: (B) int labels, or (B, C) soft labels that sum to 1.
        class_weights: C weights, or None for ones.

    Returns:
        (B).
    """
    logits, targets = float64(logits), np.asarray(targets)
    classes = logits.shape[-1]
    if targets.ndim == 1:
        targets = np.eye(classes)[targets]
    weights = np.ones(classes) if class_weights is None else float64(class_weights)
    return -(weights * float64(targets) * log_softmax(logits)).sum(axis=-1)


def smooth_labels(labels: Array, classes: int, smoothing: float) -> Array:
    """(1 - e) onehot + e / C (Szegedy et al. 2016, section 7): (B) int -> (B, C)."""
    return (1.0 - smoothing) * np.eye(classes)[np.asarray(labels)] + smoothing / classes


def warmup_then_linear_decay(
    step: int, peak: float, warmup_steps: int, total_steps: int, end: float = 0.0
) -> float:
    """The rate of update number `step`, counted from 0 (Devlin et al., appendix A.2).

    It rises in a straight line from 0 at step 0 to the peak at `warmup_steps`, then falls in a
    straight line to `end` at `total_steps` and stays there.
    """
    if step < warmup_steps:
        return peak * step / warmup_steps
    if step >= total_steps:
        return end
    left = (total_steps - step) / (total_steps - warmup_steps)
    return end + (peak - end) * left


def inverse_square_root_rate(step: int, width: int, warmup_steps: int) -> float:
    """D^-0.5 min(step^-0.5, step warmup^-1.5), steps from 1 (Vaswani et al., 5.3, equation 3)."""
    return width**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def global_norm(gradients: Sequence[Array]) -> float:
    """The Euclidean norm of all numbers of all gradients together."""
    return math.sqrt(sum(float((float64(g) ** 2).sum()) for g in gradients))


def clip_by_global_norm(gradients: Sequence[Array], limit: float) -> list[Array]:
    """All gradients scaled by limit / norm where the norm is above the limit (Pascanu et al.)."""
    norm = global_norm(gradients)
    scale = limit / norm if norm > limit else 1.0
    return [float64(g) * scale for g in gradients]


class AdamW:
    """Adam with bias correction and decay apart from the gradient (Loshchilov and Hutter, alg. 2).

    theta <- theta - rate (m_hat / (sqrt(v_hat) + epsilon) + decay theta), the old theta in both.
    """

    def __init__(
        self,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-6,
        decay: float = 0.01,
    ) -> None:
        self.beta_1, self.beta_2, self.epsilon, self.decay = beta_1, beta_2, epsilon, decay
        self.step = 0
        self.first: dict[str, Array] = {}
        self.second: dict[str, Array] = {}

    def update(
        self,
        parameters: Mapping[str, Array],
        gradients: Mapping[str, Array],
        rate: float,
        undecayed: Sequence[str] = (),
    ) -> dict[str, Array]:
        """One step: the new parameters by name. Names in `undecayed` get no decay."""
        self.step += 1
        new = {}
        for name, value in parameters.items():
            theta, g = float64(value), float64(gradients[name])
            zero = np.zeros_like(theta)
            m = self.beta_1 * self.first.get(name, zero) + (1 - self.beta_1) * g
            v = self.beta_2 * self.second.get(name, zero) + (1 - self.beta_2) * g**2
            self.first[name], self.second[name] = m, v
            m_hat = m / (1 - self.beta_1**self.step)
            v_hat = v / (1 - self.beta_2**self.step)
            decay = 0.0 if name in undecayed else self.decay
            new[name] = theta - rate * (m_hat / (np.sqrt(v_hat) + self.epsilon) + decay * theta)
        return new
