"""The canonical names and shapes of an encoder's weights: the variable paths of `kbert.Bert`."""

from collections.abc import Mapping
from typing import Any

POOLER = ("pooler/kernel", "pooler/bias")


def canonical_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """Returns the name and the shape of each weight, in the order in which the model runs.

    With D hidden, I intermediate, V vocabulary, P positions. Kernels are (in, out); query, key and
    value are concatenated in one kernel (D, 3D).

    Args:
        config: Hyperparameters under kbert's names.

    Returns:
        Canonical name -> shape, the pooler last.
    """
    hidden = config["hidden_dim"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings/token_embedding/embeddings": (config["vocabulary_size"], hidden),
        "embeddings/position_embedding/embeddings": (config["max_sequence_length"], hidden),
        "embeddings/segment_embedding/embeddings": (config["num_segments"], hidden),
        "embeddings/layer_norm/gamma": (hidden,),
        "embeddings/layer_norm/beta": (hidden,),
    }
    for index in range(config["num_layers"]):
        for name, shape in _block_shapes(hidden, config["intermediate_dim"]).items():
            shapes[f"encoder_block_{index}/{name}"] = shape
    shapes["pooler/kernel"] = (hidden, hidden)
    shapes["pooler/bias"] = (hidden,)
    return shapes


def _block_shapes(hidden: int, intermediate: int) -> dict[str, tuple[int, ...]]:
    """Returns the weights of one encoder block."""
    return {
        "attention/qkv/kernel": (hidden, 3 * hidden),
        "attention/qkv/bias": (3 * hidden,),
        "attention/output/kernel": (hidden, hidden),
        "attention/output/bias": (hidden,),
        "attention_residual/layer_norm/gamma": (hidden,),
        "attention_residual/layer_norm/beta": (hidden,),
        "feed_forward/intermediate/kernel": (hidden, intermediate),
        "feed_forward/intermediate/bias": (intermediate,),
        "feed_forward/output/kernel": (intermediate, hidden),
        "feed_forward/output/bias": (hidden,),
        "feed_forward_residual/layer_norm/gamma": (hidden,),
        "feed_forward_residual/layer_norm/beta": (hidden,),
    }
