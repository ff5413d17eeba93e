"""Google's `bert_config.json`, which lies beside TF1 and Model Garden checkpoints.

Source: google-research/bert, `modeling.py`, class BertConfig.
"""

from collections.abc import Mapping
from typing import Any

from kbert.checkpoints.arrays.encoder_config import CAUSAL, check_config

CONFIG = "bert_config.json"
# kbert's key -> (Google's key, BertConfig's default; the published files have all of them).
_KEYS: dict[str, tuple[str, Any]] = {
    "vocabulary_size": ("vocab_size", None),
    "hidden_dim": ("hidden_size", 768),
    "num_layers": ("num_hidden_layers", 12),
    "num_heads": ("num_attention_heads", 12),
    "intermediate_dim": ("intermediate_size", 3072),
    "max_sequence_length": ("max_position_embeddings", 512),
    "num_segments": ("type_vocab_size", 16),
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
    "initializer_range": ("initializer_range", 0.02),
}
_ACTIVATIONS = ("relu", "tanh", "linear")
# Not an option in either code base.
_LAYER_NORM_EPSILON = 1e-12


def config_from_google(
    raw: Mapping[str, Any],
    source: str,
    gelu: str,
    keys: Mapping[str, tuple[str, Any]] | None = None,
    activation_key: str = "hidden_act",
) -> dict[str, Any]:
    """Reads a configuration.

    Args:
        raw: The content of the file.
        source: The origin that errors name.
        gelu: kbert's name of the activation that "gelu" means in this format.
        keys: kbert's key -> (the file's key, default), if they are not those of BertConfig.
        activation_key: The file's key of the activation.

    Returns:
        Hyperparameters under kbert's names.

    Raises:
        ValueError: If a value is missing or invalid.
    """
    keys = keys or _KEYS
    config = {key: raw.get(name, default) for key, (name, default) in keys.items()}
    missing = [name for key, (name, _) in keys.items() if config[key] is None]
    if missing:
        raise ValueError(f"{source} must have {', '.join(missing)}. Received: {', '.join(raw)}")
    activation = raw.get(activation_key, "gelu")
    if activation != "gelu" and activation not in _ACTIVATIONS:
        raise ValueError(
            f"{source}: `{activation_key}` must be one of gelu, {', '.join(_ACTIVATIONS)}. "
            f"Received: {activation_key}={activation!r}"
        )
    config["activation"] = gelu if activation == "gelu" else activation
    config["layer_norm_epsilon"] = _LAYER_NORM_EPSILON
    check_config(config, source)
    return config


def config_to_google(config: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the content of `bert_config.json`.

    Args:
        config: Hyperparameters under kbert's names.

    Returns:
        The configuration under Google's names.

    Raises:
        ValueError: If Google's format cannot express the configuration.
    """
    activation = config["activation"]
    if activation not in ("gelu", "gelu_approximate", *_ACTIVATIONS):
        raise ValueError(
            f"`activation` must be one of gelu, gelu_approximate, {', '.join(_ACTIVATIONS)} in "
            f"Google's format. Received: activation={activation!r}"
        )
    if config.get(CAUSAL):
        raise ValueError(f"`causal` must be False in Google's format. Received: causal={True}")
    if config["layer_norm_epsilon"] != _LAYER_NORM_EPSILON:
        raise ValueError(
            f"`layer_norm_epsilon` must be {_LAYER_NORM_EPSILON} in Google's format. "
            f"Received: layer_norm_epsilon={config['layer_norm_epsilon']}"
        )
    raw = {name: config[key] for key, (name, _) in _KEYS.items()}
    raw["hidden_act"] = "gelu" if activation.startswith("gelu") else activation
    return raw
