"""The published sizes of BERT and of the Transformer."""

from typing import Any

# Layers, hidden width and heads: Turc et al. 2019 (tiny to medium), Devlin et al. 2019 (base,
# large). The feed-forward width is four times the hidden width in all of them.
BERT_SIZES: dict[str, dict[str, int]] = {
    "tiny": {"num_layers": 2, "hidden_dim": 128, "num_heads": 2, "intermediate_dim": 512},
    "mini": {"num_layers": 4, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024},
    "small": {"num_layers": 4, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "medium": {"num_layers": 8, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "base": {"num_layers": 12, "hidden_dim": 768, "num_heads": 12, "intermediate_dim": 3072},
    "large": {"num_layers": 24, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


def bert_size(name: str) -> dict[str, Any]:
    """Returns the arguments of `Bert` for a published size, or raises a ValueError."""
    if name not in BERT_SIZES:
        raise ValueError(f"`size` must be one of {list(BERT_SIZES)}. Received: size={name!r}")
    return dict(BERT_SIZES[name])


# Vaswani et al. 2017, table 3 (base, big); "tiny" is the size that does best on Multi30k's 29,000
# captions (Wu et al. 2021), "small" lies between.
TRANSFORMER_SIZES: dict[str, dict[str, int]] = {
    "tiny": {"num_layers": 4, "hidden_dim": 128, "num_heads": 4, "intermediate_dim": 256},
    "small": {"num_layers": 6, "hidden_dim": 256, "num_heads": 4, "intermediate_dim": 1024},
    "base": {"num_layers": 6, "hidden_dim": 512, "num_heads": 8, "intermediate_dim": 2048},
    "big": {"num_layers": 6, "hidden_dim": 1024, "num_heads": 16, "intermediate_dim": 4096},
}


def transformer_size(name: str) -> dict[str, Any]:
    """Returns the arguments of `Transformer` for a known size, or raises a ValueError.

    There are as many encoder as decoder blocks.
    """
    if name not in TRANSFORMER_SIZES:
        known = list(TRANSFORMER_SIZES)
        raise ValueError(f"`size` must be one of {known}. Received: size={name!r}")
    sizes: dict[str, Any] = dict(TRANSFORMER_SIZES[name])
    layers = sizes.pop("num_layers")
    return {"num_encoder_layers": layers, "num_decoder_layers": layers, **sizes}
