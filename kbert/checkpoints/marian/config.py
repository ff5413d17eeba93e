"""Hugging Face's `config.json` of Marian as the arguments of kbert's Transformer.

Source: transformers, `models/marian/configuration_marian.py`.
"""

from collections.abc import Mapping
from typing import Any

from kbert.checkpoints.huggingface.config import activation_from_huggingface

# kbert's key -> (Hugging Face's key, its default).
_SIZES = {
    "vocabulary_size": ("vocab_size", 58101),
    "hidden_dim": ("d_model", 1024),
    "num_encoder_layers": ("encoder_layers", 12),
    "num_decoder_layers": ("decoder_layers", 12),
    "num_heads": ("encoder_attention_heads", 16),
    "intermediate_dim": ("encoder_ffn_dim", 4096),
    "max_sequence_length": ("max_position_embeddings", 1024),
}
_RATES = {"dropout": ("dropout", 0.1), "attention_dropout": ("attention_dropout", 0.0)}
# Fields of the decoder that must equal those of the encoder.
_SAME = {
    "decoder_attention_heads": ("encoder_attention_heads", 16),
    "decoder_ffn_dim": ("encoder_ffn_dim", 4096),
}
# Fields of older files that change what the model computes, with the values that change nothing.
_PLAIN = {
    "normalize_before": (None, False),
    "normalize_embedding": (None, False),
    "add_final_layer_norm": (None, False),
    "static_position_embeddings": (None, True),
    "quantization_config": (None,),
}


def config_from_marian(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Reads a configuration.

    Args:
        raw: the content of `config.json`. Missing fields have transformers' defaults.
        source: the origin that errors name.

    Returns:
        The arguments of `kbert.models.transformer.Transformer`. If embeddings are not scaled,
        `tied` is "none": kbert scales them on look-up, so that their table cannot be that of the
        output.

    Raises:
        ValueError: it is not a Marian model, or a variant that kbert does not support.
    """
    if raw.get("model_type") != "marian":
        raise ValueError(
            f"{source}: `model_type` must be 'marian'. Received: {raw.get('model_type')!r}"
        )
    for key, allowed in _PLAIN.items():
        if raw.get(key) not in allowed:
            raise ValueError(
                f"{source}: `{key}` must be {allowed[-1]!r} or absent. Received: {raw[key]!r}"
            )
    for key, (other, default) in _SAME.items():
        if raw.get(key, default) != raw.get(other, default):
            raise ValueError(
                f"{source}: `{key}` must be equal to `{other}`. Received: {key}="
                f"{raw.get(key, default)}, {other}={raw.get(other, default)}"
            )
    config = {key: raw.get(name, default) for key, (name, default) in _SIZES.items()}
    source_vocabulary_size = None
    if not raw.get("share_encoder_decoder_embeddings", True):
        source_vocabulary_size = config["vocabulary_size"]
        config["vocabulary_size"] = raw.get("decoder_vocab_size") or source_vocabulary_size
    for key, value in config.items():
        if type(value) is not int or value < 1:
            raise ValueError(
                f"{source}: `{_SIZES[key][0]}` must be a positive whole number. Received: {value!r}"
            )
    activation = raw.get("activation_function", "gelu")
    return {
        **config,
        **{key: raw.get(name, default) for key, (name, default) in _RATES.items()},
        "activation": activation_from_huggingface(activation, source, "activation_function"),
        "norm": "post",
        "positions": "sinusoidal_halves",
        "tied": _tied(raw),
        "source_vocabulary_size": source_vocabulary_size,
        "output_bias": True,
        "layer_norm_epsilon": 1e-5,
    }


def _tied(raw: Mapping[str, Any]) -> str:
    if not (raw.get("tie_word_embeddings", True) and raw.get("scale_embedding", False)):
        return "none"
    return "all" if raw.get("share_encoder_decoder_embeddings", True) else "target"


def settings_from_marian(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Reads search settings, under the names of `kbert.tasks.translation.model.Translator`.

    Args:
        raw: the content of `config.json` and `generation_config.json` together.

    Returns:
        The settings present, except the maximum length, which kbert has relative to the source.
    """
    settings: dict[str, Any] = {}
    if raw.get("num_beams"):
        settings["beam_size"] = raw["num_beams"]
    if raw.get("length_penalty") is not None:
        settings |= {"length_penalty": "power", "alpha": float(raw["length_penalty"])}
    return settings
