"""Hugging Face's `config.json` of an encoder <-> kbert's configuration.

Source: transformers, `models/bert/configuration_bert.py` and `activations.py`.
"""

from collections.abc import Mapping
from typing import Any

from kbert.architectures import ENCODERS, encoder_layout
from kbert.checkpoints.arrays.encoder_config import CAUSAL
from kbert.checkpoints.arrays.encoder_layout import EncoderLayout
from kbert.checkpoints.encoders.bert import LAYOUT as BERT

# The field of the dropout of heads, as the tasks name it.
_HEAD_DROPOUT = "classifier_dropout"
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


def config_from_huggingface(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Reads a configuration.

    Args:
        raw: The content of `config.json`. Missing sizes have transformers' defaults.
        source: The origin that errors name.

    Returns:
        Hyperparameters under kbert's names.

    Raises:
        ValueError: If it is not an encoder, or a variant that kbert does not support.
    """
    layout = layout_of_huggingface(raw, source)
    names = layout.huggingface
    for key, allowed in names.plain.items():
        if raw.get(key) not in allowed:
            raise ValueError(
                f"{source}: `{key}` must be {allowed[-1]!r} or absent; kbert builds plain encoders "
                f"with absolute positions. Received: {key}={raw[key]!r}"
            )
    config = {key: raw.get(name, default) for key, (name, default) in names.keys.items()}
    config["activation"] = activation_from_huggingface(config["activation"], source)
    if names.causal is not None and raw.get(names.causal):
        config[CAUSAL] = raw[names.causal]
    layout.check_config(config, source)
    return config


def layout_of_huggingface(raw: Mapping[str, Any], source: str) -> EncoderLayout:
    """Returns the layout of the encoder that a configuration is of.

    Args:
        raw: The content of `config.json`; its `model_type` says it, in old files the classes.
        source: The origin that errors name.

    Raises:
        ValueError: If it is none that kbert has; the message names those.
    """
    layouts: list[EncoderLayout] = [encoder_layout(name) for name in ENCODERS]
    classes = [str(name) for name in raw.get("architectures") or []]
    layouts = [layout for layout in layouts if layout.transformers is not None]
    for layout in layouts:
        names = layout.huggingface
        fitting = all(name.startswith(names.class_prefix) for name in classes)
        if raw.get("model_type", names.model_type if fitting else None) == names.model_type:
            return layout
    known = " or ".join(repr(layout.huggingface.model_type) for layout in layouts)
    raise ValueError(
        f"{source}: `model_type` must be {known}. Received: model_type={raw.get('model_type')!r}"
        f", architectures={raw.get('architectures') or []!r}"
    )


def config_to_huggingface(
    config: Mapping[str, Any],
    source_config: Mapping[str, Any],
    architecture: str,
    dtype: str,
    layout: EncoderLayout = BERT,
) -> dict[str, Any]:
    """Makes the content of `config.json`.

    Args:
        config: Hyperparameters under kbert's names.
        source_config: The raw configuration that the weights came with, or {}; its fields stay as
            they are unless they contradict `config`.
        architecture: The class of transformers, for example "BertModel".
        dtype: The dtype of the weights, for example "float32".
        layout: The layout of the encoder.

    Returns:
        The configuration, known fields and unknown ones.
    """
    raw: dict[str, Any] = dict(source_config)
    raw["architectures"] = [architecture]
    names = layout.huggingface
    raw["model_type"] = names.model_type
    for key, (name, _) in names.keys.items():
        value = config[key]
        if key == "activation":
            value = _activation_to_huggingface(value, raw.get(name))
        if name not in raw or raw[name] != value:
            raw[name] = value
    if names.head_dropout != _HEAD_DROPOUT and _HEAD_DROPOUT in raw:
        raw[names.head_dropout] = raw.pop(_HEAD_DROPOUT)
    if names.causal and config.get(CAUSAL, False) != bool(raw.get(names.causal)):
        raw[names.causal] = config.get(CAUSAL, False)
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
