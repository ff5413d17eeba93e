"""The canonical names and shapes of weights: the variable paths of `Bert` and `Transformer`."""

from collections.abc import Mapping
from typing import Any

POOLER = ("pooler/kernel", "pooler/bias")
# The end of a weight's canonical name -> that of its name in a file.
TENSORFLOW_ENDS = {"kernel": "/kernel", "bias": "/bias", "gamma": "/gamma", "beta": "/beta"}
TORCH_ENDS = {"kernel": ".weight", "bias": ".bias", "gamma": ".weight", "beta": ".bias"}


def canonical_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight, in the order in which the model runs.

    Kernels are (in, out); query, key and value are concatenated in one kernel (D, 3D). The pooler
    comes last. `config` holds hyperparameters under kbert's names.
    """
    hidden, intermediate = config["hidden_dim"], config["intermediate_dim"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings/token_embedding/embeddings": (config["vocabulary_size"], hidden),
        "embeddings/position_embedding/embeddings": (config["max_sequence_length"], hidden),
        "embeddings/segment_embedding/embeddings": (config["num_segments"], hidden),
    }
    shapes |= _norm_shapes("embeddings/layer_norm", hidden)
    for index in range(config["num_layers"]):
        shapes |= block_shapes(index, hidden, intermediate)
    return shapes | linear_shapes("pooler", hidden, hidden)


def transformer_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight of a `kbert.models.transformer.Transformer`.

    Kernels are (in, out); query, key and value are concatenated in one kernel (D, 3D), key and
    value of the cross-attention in one (D, 2D). `config` holds the arguments of the class.
    """
    hidden, intermediate = config["hidden_dim"], config["intermediate_dim"]
    vocabulary, tied = config["vocabulary_size"], config["tied"]
    source_vocabulary = config["source_vocabulary_size"] or vocabulary
    shapes: dict[str, tuple[int, ...]] = {
        "source_embedding/embeddings": (source_vocabulary, hidden)
    }
    if tied != "all":
        shapes["target_embedding/embeddings"] = (vocabulary, hidden)
    if config["positions"] == "learned":
        table = (config["max_sequence_length"], hidden)
        shapes |= {f"{side}_positions/embeddings": table for side in ("source", "target")}
    for index in range(config["num_encoder_layers"]):
        shapes |= block_shapes(index, hidden, intermediate)
    for index in range(config["num_decoder_layers"]):
        block = f"decoder_block_{index}"
        shapes |= _self_attention_shapes(f"{block}/self_attention", hidden)
        shapes |= linear_shapes(f"{block}/cross_attention/query", hidden, hidden)
        shapes |= linear_shapes(f"{block}/cross_attention/key_value", hidden, 2 * hidden)
        shapes |= linear_shapes(f"{block}/cross_attention/output", hidden, hidden)
        shapes |= _norm_shapes(f"{block}/cross_attention_residual/layer_norm", hidden)
        shapes |= _feed_forward_shapes(block, hidden, intermediate)
    if config["norm"] == "pre":
        shapes |= _norm_shapes("encoder_norm", hidden) | _norm_shapes("decoder_norm", hidden)
    if tied == "none":
        shapes["output/kernel"] = (hidden, vocabulary)
    if config["output_bias"]:
        shapes["output/bias"] = (vocabulary,)
    return shapes


def block_shapes(index: int, hidden: int, intermediate: int) -> dict[str, tuple[int, ...]]:
    """Returns canonical name -> shape of the weights of the encoder's block `index`."""
    block = f"encoder_block_{index}"
    return {
        **_self_attention_shapes(f"{block}/attention", hidden),
        **_feed_forward_shapes(block, hidden, intermediate),
    }


def _self_attention_shapes(name: str, hidden: int) -> dict[str, tuple[int, ...]]:
    return {
        **linear_shapes(f"{name}/qkv", hidden, 3 * hidden),
        **linear_shapes(f"{name}/output", hidden, hidden),
        **_norm_shapes(f"{name}_residual/layer_norm", hidden),
    }


def _feed_forward_shapes(block: str, hidden: int, intermediate: int) -> dict[str, tuple[int, ...]]:
    return {
        **linear_shapes(f"{block}/feed_forward/intermediate", hidden, intermediate),
        **linear_shapes(f"{block}/feed_forward/output", intermediate, hidden),
        **_norm_shapes(f"{block}/feed_forward_residual/layer_norm", hidden),
    }


def linear_shapes(name: str, inputs: int, outputs: int) -> dict[str, tuple[int, ...]]:
    """Returns canonical name -> shape of the weights of a dense layer."""
    return {f"{name}/kernel": (inputs, outputs), f"{name}/bias": (outputs,)}


def _norm_shapes(name: str, hidden: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/gamma": (hidden,), f"{name}/beta": (hidden,)}


def weight_names(
    parts: Mapping[str, tuple[str, ...]], ends: Mapping[str, str] = TENSORFLOW_ENDS
) -> dict[str, tuple[str, ...]]:
    """Returns canonical name -> names in a file.

    `parts` maps a part, such as "attention/output", to its names in the file, and `ends` gamma,
    beta, kernel and bias to what the file appends to them.
    """
    names = {}
    for part, sources in parts.items():
        for end in ("gamma", "beta") if part.endswith("layer_norm") else ("kernel", "bias"):
            names[f"{part}/{end}"] = tuple(f"{source}{ends[end]}" for source in sources)
    return names
