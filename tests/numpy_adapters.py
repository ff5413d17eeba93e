"""An independent NumPy reference of adapters in BERT's encoder, written from the papers.

Sources: Houlsby et al. 2019, "Parameter-Efficient Transfer Learning for NLP" (section 2.1, figure
2); Pfeiffer et al. 2021, "AdapterFusion" (section 3) and Pfeiffer et al. 2020, "AdapterHub"; Hu et
al. 2021, "LoRA" (section 4.1). Nothing here knows kbert; everything is float64.

Letters: B batch, T length, D width, I inner width, m bottleneck, r rank, N fused adapters.

All weights lie in plain dicts of arrays, kernels as (in, out). A block's own:

- `query/kernel`, `key/kernel`, `value/kernel`, `attention_output/kernel` (D, D),
  `intermediate/kernel` (D, I), `output/kernel` (I, D), and the same six with `bias`;
- `attention_norm/gamma`, `attention_norm/beta`, `output_norm/gamma`, `output_norm/beta` (D).

A block's adapters are another dict; what is in it is used. LoRA goes with each of the others, of
which a block has one:

- Houlsby: `houlsby_attention/down/kernel` (D, m), `.../down/bias` (m), `.../up/kernel` (m, D),
  `.../up/bias` (D), and the same under `houlsby_output`. Where either has `norm/gamma` and
  `norm/beta` (D), these take the place of the block's own norm.
- Pfeiffer: `pfeiffer/down/kernel` and so on.
- Fusion: `fusion/adapter_0/down/kernel` and so on for each adapter, counted from 0, and
  `fusion/query/kernel` (D, D), `fusion/query/bias` (D), `fusion/key/kernel`, `fusion/key/bias`,
  `fusion/value/kernel`, which has no bias. Without the last, W_v is the identity ("static").
- LoRA: `lora/LAYER/a` (in, r) and `lora/LAYER/b` (r, out), LAYER one of `LORA_LAYERS`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tests.numpy_reference import (
    Array,
    dense,
    float64,
    gelu,
    key_mask,
    layer_norm,
    merge_heads,
    relu,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)

Weights = Mapping[str, Array]

LORA_LAYERS = ("query", "key", "value", "attention_output", "intermediate", "output")


def silu(x: Array) -> Array:
    """x sigmoid(x), which is called Swish too."""
    x = float64(x)
    return x / (1.0 + np.exp(-x))


ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "relu": relu,
    "silu": silu,
    "swish": silu,
    "tanh": lambda x: np.tanh(float64(x)),
}


@dataclass(frozen=True)
class Settings:
    """What the arrays do not tell.

    Attributes:
        num_heads: of the self-attention.
        activation: of the feed-forward.
        epsilon: of every LayerNorm.
        bottleneck_activation: of every bottleneck.
        lora_alpha: alpha of LoRA's factor alpha / r; r is the width of `a`.
    """

    num_heads: int
    activation: str = "gelu"
    epsilon: float = 1e-12
    bottleneck_activation: str = "gelu"
    lora_alpha: float = 8.0


def under(weights: Weights, prefix: str) -> dict[str, Array]:
    """The arrays whose names begin with the prefix and "/", without both."""
    start = f"{prefix}/"
    return {n.removeprefix(start): array for n, array in weights.items() if n.startswith(start)}


# --- the parts -------------------------------------------------------------------------------


def bottleneck(x: Array, adapter: Weights, activation: str) -> Array:
    """f(x W_d + b_d) W_u + b_u, without any residual: (..., D) -> (..., D)."""
    narrow = dense(x, adapter["down/kernel"], adapter["down/bias"])
    return dense(ACTIVATIONS[activation](narrow), adapter["up/kernel"], adapter["up/bias"])


def houlsby(
    x: Array, h: Array, adapter: Weights, norm: Weights, activation: str, epsilon: float = 1e-12
) -> Array:
    """LN(x + h + bottleneck(h)).

    "The adapter is always applied directly to the output of the sub-layer, after the projection
    back to the input size, but before adding the skip connection back" (section 2.1). The adapter
    has a skip connection inside, hence h twice.

    Args:
        x: the sublayer's input (..., D).
        h: the sublayer's dense output (..., D).
        adapter: `down`, `up`, and `norm` if the adapter has its own.
        norm: `gamma` and `beta` of the block, used if the adapter has none.
        activation: of the bottleneck.
        epsilon: of the norm.
    """
    norm = under(adapter, "norm") or norm
    total = float64(x) + float64(h) + bottleneck(h, adapter, activation)
    return layer_norm(total, norm["gamma"], norm["beta"], epsilon)


def pfeiffer(
    x: Array, h: Array, adapter: Weights, norm: Weights, activation: str, epsilon: float = 1e-12
) -> Array:
    """a = LN(h + x), then LN(bottleneck(a) + h + x), with the same LN. Arguments as `houlsby`."""
    total = float64(h) + float64(x)
    a = layer_norm(total, norm["gamma"], norm["beta"], epsilon)
    total = bottleneck(a, adapter, activation) + total
    return layer_norm(total, norm["gamma"], norm["beta"], epsilon)


def lora_dense(x: Array, kernel: Array, bias: Array, lora: Weights, alpha: float) -> Array:
    """x W + b + (alpha / r) x A B (Hu et al., equation 3, with rows for columns)."""
    y = dense(x, kernel, bias)
    if not lora:
        return y
    rank = lora["a"].shape[1]
    return y + alpha / rank * (float64(x) @ float64(lora["a"]) @ float64(lora["b"]))


def lora_merged_kernel(kernel: Array, lora: Weights, alpha: float) -> Array:
    """W + (alpha / r) A B, with which a plain dense layer gives what `lora_dense` gives."""
    rank = lora["a"].shape[1]
    return float64(kernel) + alpha / rank * (float64(lora["a"]) @ float64(lora["b"]))


# --- AdapterFusion ---------------------------------------------------------------------------


def fused_adapters(fusion: Weights) -> list[dict[str, Array]]:
    """The adapters of a fusion, in the order of their numbers."""
    adapters: list[dict[str, Array]] = []
    while adapter := under(fusion, f"adapter_{len(adapters)}"):
        adapters.append(adapter)
    return adapters


def fusion_weights(a: Array, outputs: Sequence[Array], fusion: Weights) -> Array:
    """softmax over n of (a W_q + b_q) . (u_n W_k + b_k), for each token by itself, no scale.

    Args:
        a: what the query is made of (..., D).
        outputs: u_n, one (..., D) for each adapter.
        fusion: `query` and `key`.

    Returns:
        (..., N).
    """
    query = dense(a, fusion["query/kernel"], fusion["query/bias"])
    keys = [dense(u, fusion["key/kernel"], fusion["key/bias"]) for u in outputs]
    return softmax(np.stack([(query * key).sum(axis=-1) for key in keys], axis=-1))


def adapter_fusion(
    x: Array, h: Array, fusion: Weights, norm: Weights, activation: str, epsilon: float = 1e-12
) -> Array:
    """AdapterFusion at Pfeiffer's place: LN(sum_n alpha_n u_n W_v + h + x).

    With a = LN(h + x) and u_n the output of adapter n for a, without residual. Arguments as
    `houlsby`; `fusion` has the adapters, `query`, `key` and `value`.

    The paper (section 3.2) has softmax(h Q . z_n K) and sum_n s_n z_n V: no biases, no scale, no
    residuals; its query is "the output of the feed-forward sub-layer", its z_n "the output of each
    adapter". What that leaves open is taken from its authors' library (AdapterHub's adapters
    1.3.0): the query is a, behind the LayerNorm; z_n is u_n, before the adapter's residual; Q and
    K have biases; h is added once to the weighted sum, then x, then the block's norm. The notes
    say the same; their o has no x yet. The key's bias, or h added to every u_n, would add the same
    to all scores of a token, which changes no weight; for the value, h added would count.
    """
    total = float64(h) + float64(x)
    a = layer_norm(total, norm["gamma"], norm["beta"], epsilon)
    outputs = [bottleneck(a, adapter, activation) for adapter in fused_adapters(fusion)]
    alphas = fusion_weights(a, outputs, fusion)
    for n, u in enumerate(outputs):
        value = dense(u, fusion["value/kernel"]) if "value/kernel" in fusion else u
        total = total + alphas[..., n : n + 1] * value
    return layer_norm(total, norm["gamma"], norm["beta"], epsilon)


def fusion_regularization(value_kernels: Sequence[Array], factor: float = 0.01) -> float:
    """factor * sum over the layers of |I - W_v|^2, all elements squared and added.

    So in the library; the paper says no more than "we regularize the Value matrix using l2-norm".
    """
    return factor * sum(
        float(((np.eye(len(kernel)) - float64(kernel)) ** 2).sum()) for kernel in value_kernels
    )


# --- the encoder -----------------------------------------------------------------------------


def adapted_dense(
    x: Array, block: Weights, adapters: Weights, layer: str, settings: Settings
) -> Array:
    """A dense layer of the block, with LoRA if the adapters have it for this layer."""
    lora = under(adapters, f"lora/{layer}")
    kernel, bias = block[f"{layer}/kernel"], block[f"{layer}/bias"]
    return lora_dense(x, kernel, bias, lora, settings.lora_alpha)


def residual_and_norm(
    x: Array, h: Array, block: Weights, adapters: Weights, sublayer: str, settings: Settings
) -> Array:
    """What follows a sublayer's dense output h: the bottlenecks of the place, residual and norm.

    Args:
        x: the sublayer's input (B, T, D).
        h: its dense output (B, T, D).
        block: the block's own arrays.
        adapters: the block's adapters.
        sublayer: "attention" or "output".
        settings: of the model.
    """
    norm = under(block, f"{sublayer}_norm")
    kinds: dict[str, Callable[..., Array]] = {f"houlsby_{sublayer}": houlsby}
    if sublayer == "output":
        kinds |= {"pfeiffer": pfeiffer, "fusion": adapter_fusion}
    for name, kind in kinds.items():
        if adapter := under(adapters, name):
            activation = settings.bottleneck_activation
            return kind(x, h, adapter, norm, activation, settings.epsilon)
    return layer_norm(float64(x) + float64(h), norm["gamma"], norm["beta"], settings.epsilon)


def adapted_block(
    x: Array, block: Weights, adapters: Weights, settings: Settings, mask: Array | None = None
) -> Array:
    """One post-norm block (B, T, D) -> (B, T, D). The mask is bool (B, T, T), or None."""
    kinds = {name.split("/")[0].split("_")[0] for name in adapters} - {"lora"}
    if len(kinds) > 1:
        raise ValueError(f"one kind of bottleneck a block, not {sorted(kinds)}")
    query, key, value = (
        split_heads(adapted_dense(x, block, adapters, layer, settings), settings.num_heads)
        for layer in ("query", "key", "value")
    )
    context = merge_heads(scaled_dot_product_attention(query, key, value, mask)[0])
    h = adapted_dense(context, block, adapters, "attention_output", settings)
    x = residual_and_norm(x, h, block, adapters, "attention", settings)
    inner = adapted_dense(x, block, adapters, "intermediate", settings)
    inner = ACTIVATIONS[settings.activation](inner)
    h = adapted_dense(inner, block, adapters, "output", settings)
    return residual_and_norm(x, h, block, adapters, "output", settings)


def adapted_encoder(
    embeddings: Array,
    blocks: Sequence[Weights],
    settings: Settings,
    adapters: Sequence[Weights] | None = None,
    padding_mask: Array | None = None,
) -> list[Array]:
    """The hidden states of every layer of a post-norm encoder.

    Args:
        embeddings: the embeddings' output (B, T, D).
        blocks: each block's own arrays.
        settings: of the model.
        adapters: each block's adapters, an empty dict for a block without; None = none at all.
        padding_mask: bool (B, T), True = a token; or None.

    Returns:
        The embeddings and the output of each block: one more array than there are blocks.
    """
    states = [float64(embeddings)]
    mask = None if padding_mask is None else key_mask(padding_mask, states[0].shape[1])
    per_block = [{}] * len(blocks) if adapters is None else adapters
    for block, own in zip(blocks, per_block, strict=True):
        states.append(adapted_block(states[-1], block, own, settings, mask))
    return states
