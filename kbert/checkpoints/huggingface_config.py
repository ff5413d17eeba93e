"""Hugging Face's `config.json` of an encoder <-> kbert's configuration; classes of transformers.

Source: transformers, `models/bert/configuration_bert.py` and `activations.py`.
"""

from collections.abc import Collection, Mapping
from typing import Any

from kbert.architectures import ENCODERS, encoder_layout
from kbert.checkpoints.arrays.encoder_layout import CAUSAL, EncoderLayout
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
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
    "sigmoid": "sigmoid",
    "linear": "linear",
}


def config_from_huggingface(raw: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Returns the hyperparameters of a `config.json`, missing ones with transformers' defaults.

    Raises a ValueError that names `source` if it is of no encoder, or of a variant that kbert does
    not support.
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
    named = config["activation"], source, names.keys["activation"][0]
    config["activation"] = activation_from_huggingface(*named)
    if type(config["max_sequence_length"]) is int:
        config["max_sequence_length"] -= names.first_position
    if names.causal is not None and raw.get(names.causal):
        config[CAUSAL] = raw[names.causal]
    layout.check_config(config, source)
    return config


def layout_of_huggingface(raw: Mapping[str, Any], source: str) -> EncoderLayout:
    """Returns the layout of the encoder that a `config.json` is of.

    Its `model_type` says it, in old files the classes. Raises a ValueError that names those that
    kbert has.
    """
    layouts: list[EncoderLayout] = [encoder_layout(name) for name in ENCODERS]
    layouts = [layout for layout in layouts if layout.transformers is not None]
    classes = raw.get("architectures") or []
    for layout in layouts:
        names = layout.huggingface
        fitting = all(str(name).startswith(names.class_prefix) for name in classes)
        if raw.get("model_type", names.model_type if fitting else None) == names.model_type:
            return layout
    known = " or ".join(repr(layout.huggingface.model_type) for layout in layouts)
    raise ValueError(
        f"{source}: `model_type` must be {known}. Received: model_type={raw.get('model_type')!r}"
        f", architectures={classes!r}"
    )


def config_to_huggingface(
    config: Mapping[str, Any],
    source_config: Mapping[str, Any],
    architecture: str,
    dtype: str,
    layout: EncoderLayout = BERT,
) -> dict[str, Any]:
    """Makes the content of `config.json`.

    `source_config` is the raw configuration that the weights came with, or {}; its fields stay as
    they are, known or not, unless they contradict `config`. `architecture` is the class of
    transformers.
    """
    names = layout.huggingface
    raw = {**source_config, "architectures": [architecture], "model_type": names.model_type}
    for key, (name, _) in names.keys.items():
        value = config[key]
        if key == "activation":
            value = activation_to_huggingface(value, raw.get(name))
        if key == "max_sequence_length":
            value += names.first_position
        if raw.get(name) != value:  # 0 stays 0 where it means 0.0
            raw[name] = value
    field = names.dropout_of(architecture)
    # Not where it comes from a source that has both, for several heads.
    if field != _HEAD_DROPOUT and _HEAD_DROPOUT in raw and field not in raw:
        rate = raw.pop(_HEAD_DROPOUT)
        raw |= {field: rate} if field else {}
    if names.causal and config.get(CAUSAL, False) != bool(raw.get(names.causal)):
        raw[names.causal] = config.get(CAUSAL, False)
    # transformers before 4.56 knows `torch_dtype`, the later ones both.
    raw["dtype" if "dtype" in raw else "torch_dtype"] = dtype
    return raw


def set_labels(raw: dict[str, Any], num_labels: int) -> None:
    """Sets `id2label` and `label2id` where they do not have this number of labels.

    Two labels are transformers' own default. `raw` is changed in place.
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
    """Returns kbert's name of an activation; a ValueError names `source` and `key`."""
    if name not in _ACTIVATIONS:
        raise ValueError(
            f"{source}: `{key}` must be one of {', '.join(_ACTIVATIONS)}. "
            f"Received: {key}={name!r}"
        )
    return _ACTIVATIONS[name]


def activation_to_huggingface(activation: str, before: Any) -> str:
    """Returns Hugging Face's name: the source's own if it means the same, else the usual one."""
    named = [name for name, ours in _ACTIVATIONS.items() if ours == activation]
    if not named:
        raise ValueError(
            f"`activation` must be one that transformers has: "
            f"{', '.join(dict.fromkeys(_ACTIVATIONS.values()))}. "
            f"Received: activation={activation!r}"
        )
    return str(before) if before in named else named[0]


def choose_architecture(
    heads: Collection[str],
    has_pooler: bool,
    wanted: str | None,
    causal: bool = False,
    layout: EncoderLayout = BERT,
) -> str:
    """Chooses the class of transformers that has exactly these heads, else raises a ValueError.

    Several classes have a `classifier`: the one that the source names decides (`wanted`), otherwise
    the pooler, which BertForSequenceClassification has and BertForTokenClassification has not. Of a
    causal encoder, BertLMHeadModel predicts tokens.
    """
    classes = layout.huggingface.classes
    fitting = [name for name, one in classes.items() if _fits(heads, one.heads)]
    if causal:
        for_causal = layout.huggingface.causal_classes
        fitting = [name for name in fitting if name in for_causal] or fitting
    if wanted in fitting:
        return str(wanted)
    if not fitting:
        raise ValueError(
            f"`heads` must be those of one of {', '.join(classes)}. Received: {', '.join(heads)}"
        )
    return next((name for name in fitting if classes[name].pooler == has_pooler), fitting[0])


def check_architecture(
    name: str,
    heads: Collection[str],
    has_pooler: bool,
    causal: bool = False,
    layout: EncoderLayout = BERT,
) -> None:
    """Raises a ValueError if a class does not fit the heads, the pooler or a causal encoder.

    It must have exactly these heads, and the pooler that it needs must be present. A causal encoder
    needs a class whose head does not read the first position.
    """
    classes, for_causal = layout.huggingface.classes, layout.huggingface.causal_classes
    if name not in classes or not _fits(heads, classes[name].heads):
        raise ValueError(
            f"`architecture` must be a class with the heads {', '.join(heads) or '(none)'}. "
            f"Received: architecture={name!r}"
        )
    if causal and name not in for_causal:
        raise ValueError(
            f"`architecture` must be one of {', '.join(for_causal) or '(none)'} for a causal "
            f"encoder. Received: architecture={name!r}"
        )
    if heads and classes[name].pooler and not has_pooler:
        raise ValueError(
            f"`architecture` must be a class without a pooler, as the checkpoint has none. "
            f"Received: architecture={name!r}"
        )


def _fits(heads: Collection[str], parts: tuple[str, ...]) -> bool:
    return all(head.startswith(parts) for head in heads) and all(
        any(head.startswith(part) for head in heads) for part in parts
    )
