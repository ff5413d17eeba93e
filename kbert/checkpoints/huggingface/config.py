"""Hugging Face's `config.json` of BERT <-> kbert's configuration.

Source: transformers, `models/bert/configuration_bert.py` and `activations.py`.
"""

from collections.abc import Mapping
from typing import Any

from kbert.checkpoints.arrays.encoder_config import CAUSAL, check_config

# kbert's key -> (Hugging Face's key, its default).
_KEYS: dict[str, tuple[str, Any]] = {
    "vocabulary_size": ("vocab_size", 30522),
    "hidden_dim": ("hidden_size", 768),
    "num_layers": ("num_hidden_layers", 12),
    "num_heads": ("num_attention_heads", 12),
    "intermediate_dim": ("intermediate_size", 3072),
    "max_sequence_length": ("max_position_embeddings", 512),
    "num_segments": ("type_vocab_size", 2),
    "dropout": ("hidden_dropout_prob", 0.1),
    "attention_dropout": ("attention_probs_dropout_prob", 0.1),
    "activation": ("hidden_act", "gelu"),
    "layer_norm_epsilon": ("layer_norm_eps", 1e-12),
    "initializer_range": ("initializer_range", 0.02),
}
# transformers' name for a BERT in which no position sees a later one; the other property of a
# decoder, cross-attention, has its own field.
_CAUSAL = "is_decoder"
# Hugging Face's activation -> kbert's. The first name of each kind is written.
_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_approximate",
    "gelu_pytorch_tanh": "gelu_approximate",
    "gelu_python_tanh": "gelu_approximate",
    "gelu_fast": "gelu_approximate",
    "gelu_accurate": "gelu_approximate",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "linear": "linear",
}
# Fields that change what the encoder computes, with the values that change nothing.
_PLAIN = {
    "position_embedding_type": (None, "absolute"),
    "add_cross_attention": (None, False),
    "is_encoder_decoder": (None, False),
    "pruned_heads": (None, {}),
    "quantization_config": (None,),
}


def config_from_huggingface(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Reads a configuration.

    Args:
        raw: The content of `config.json`. Missing sizes have transformers' defaults.
        source: The origin that errors name.

    Returns:
        Hyperparameters under kbert's names.

    Raises:
        ValueError: If it is not a BERT encoder, or a variant that kbert does not support.
    """
    architectures = raw.get("architectures") or []
    kind = raw.get("model_type", "bert" if _all_bert(architectures) else None)
    if kind != "bert":
        raise ValueError(
            f"{source}: `model_type` must be 'bert'. Received: model_type={raw.get('model_type')!r}"
            f", architectures={architectures!r}"
        )
    for key, allowed in _PLAIN.items():
        if raw.get(key) not in allowed:
            raise ValueError(
                f"{source}: `{key}` must be {allowed[-1]!r} or absent; kbert builds plain encoders "
                f"with absolute positions. Received: {key}={raw[key]!r}"
            )
    config = {key: raw.get(name, default) for key, (name, default) in _KEYS.items()}
    config["activation"] = activation_from_huggingface(config["activation"], source)
    if raw.get(_CAUSAL):
        config[CAUSAL] = raw[_CAUSAL]
    check_config(config, source)
    return config


def config_to_huggingface(
    config: Mapping[str, Any], source_config: Mapping[str, Any], architecture: str, dtype: str
) -> dict[str, Any]:
    """Makes the content of `config.json`.

    Args:
        config: Hyperparameters under kbert's names.
        source_config: The raw configuration that the weights came with, or {}; its fields stay as
            they are unless they contradict `config`.
        architecture: The class of transformers, for example "BertModel".
        dtype: The dtype of the weights, for example "float32".

    Returns:
        The configuration, known fields and unknown ones.
    """
    raw: dict[str, Any] = dict(source_config)
    raw["architectures"] = [architecture]
    raw["model_type"] = "bert"
    for key, (name, _) in _KEYS.items():
        value = config[key]
        if key == "activation":
            value = _activation_to_huggingface(value, raw.get(name))
        if name not in raw or raw[name] != value:
            raw[name] = value
    if config.get(CAUSAL, False) != bool(raw.get(_CAUSAL)):
        raw[_CAUSAL] = config.get(CAUSAL, False)
    # transformers before 4.56 knows `torch_dtype`, the later ones both.
    raw["dtype" if "dtype" in raw else "torch_dtype"] = dtype
    return raw


def set_labels(raw: dict[str, Any], num_labels: int) -> None:
    """Sets `id2label` and `label2id` where they do not have this number of labels.

    Args:
        raw: The configuration, changed in place.
        num_labels: Outputs of the classifier. Two is transformers' own default.
    """
    labels = raw.get("id2label")
    if labels is None and num_labels == 2:
        return
    if not isinstance(labels, Mapping) or len(labels) != num_labels:
        labels = {str(index): f"LABEL_{index}" for index in range(num_labels)}
        raw["id2label"] = labels
        raw.pop("label2id", None)
    if "label2id" not in raw:
        raw["label2id"] = {label: int(index) for index, label in labels.items()}


def activation_from_huggingface(name: Any, source: str, key: str = "hidden_act") -> str:
    """Returns kbert's name of an activation.

    Args:
        name: Hugging Face's name.
        source: The origin that the error names.
        key: The configuration's key for it.

    Raises:
        ValueError: If kbert has no such activation.
    """
    if name not in _ACTIVATIONS:
        raise ValueError(
            f"{source}: `{key}` must be one of {', '.join(_ACTIVATIONS)}. "
            f"Received: {key}={name!r}"
        )
    return _ACTIVATIONS[name]


def _activation_to_huggingface(activation: str, before: Any) -> str:
    """Returns Hugging Face's name: the source's own if it means the same, else the usual one."""
    if _ACTIVATIONS.get(before) == activation:
        return str(before)
    for name, ours in _ACTIVATIONS.items():
        if ours == activation:
            return name
    raise ValueError(
        f"`activation` must be one that transformers has: "
        f"{', '.join(dict.fromkeys(_ACTIVATIONS.values()))}. Received: activation={activation!r}"
    )


def _all_bert(architectures: Any) -> bool:
    """Returns whether all named classes are BERT's (old files have no `model_type`)."""
    return all(str(name).startswith("Bert") for name in architectures)
