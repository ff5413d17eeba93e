"""Loading and saving of whole text models: encoder, head, vocabulary and task settings."""

import inspect
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import encoder_class
from kbert.checkpoints.adapter_folder import write_adapters
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.read_checkpoint import read_checkpoint, write_checkpoint
from kbert.hints import nearest
from kbert.models.encoder import OF_READERS, checked_arguments, encoder_of
from kbert.pipelines.tokenizers import (
    TOKENIZER_SETTINGS,
    put_tokenizer,
    settings_of,
    tokenizer_of,
)

logger = logging.getLogger(__name__)
# A model saved as this class is an encoder to every other task.
PRETRAINED = "MaskedLanguageModel"
_ENCODER_ARGUMENTS = (
    *("adapter", "attention_dropout", "causal", "gradient_checkpointing"),
    *("initializer_range", "layer_norm_epsilon", "encoder_dropout", *OF_READERS),
)
# Settings that were found for the weights of a head.
_OF_HEADS = ("threshold", "null_threshold", "outside_bias")
_OWN = "kbert"  # key in Hugging Face's configuration of the settings that it has no fields for
# What transformers knows as `problem_type`; a folder need not name one.
_PROBLEMS = ("single_label_classification", "multi_label_classification", "regression")


def load_pipeline(
    cls: Any,
    name_or_directory: str | os.PathLike[str],
    labels: Sequence[str] | None = None,
    from_other_task: bool = False,
    checkpoint: Checkpoint | None = None,
    **kwargs: Any,
) -> Any:
    """Loads a text model of class `cls`; see `TaskModel.from_pretrained`.

    `checkpoint` is given where the directory has been read already.
    """
    _check_labels(cls, labels, kwargs)
    checked_arguments(cls, kwargs, _ENCODER_ARGUMENTS)
    if checkpoint is None:
        checkpoint = read_checkpoint(name_or_directory)
    if cls.completed is not None:
        checkpoint = cls.completed(checkpoint)
    is_own = checkpoint.pipeline.get("class") in (None, cls.__name__)
    if not is_own:
        _check_other_task(checkpoint, cls, name_or_directory, from_other_task)
    # The settings of another task's tokenizer are read by `tokenizer_of`.
    saved = {k: v for k, v in checkpoint.pipeline.items() if k != "class"} if is_own else {}
    rules = {key: saved.pop(key) for key in TOKENIZER_SETTINGS if key in saved}
    tokenizer = tokenizer_of(checkpoint, **{**rules, **cls.tokenizer_rules})
    # Lengths for encoders with fewer positions than the default of the class.
    positions = checkpoint.config["max_sequence_length"]
    defaults = cls.batching_type.default_lengths(cls, positions) | cls.default_settings(checkpoint)
    settings = {**defaults, **_own_settings(checkpoint, cls), **saved, **kwargs}
    encoder_settings = {k: settings.pop(k) for k in _ENCODER_ARGUMENTS if k in settings}
    if "encoder_dropout" in encoder_settings:
        encoder_settings["dropout"] = encoder_settings.pop("encoder_dropout")
    if "dtype" in settings:
        encoder_settings["dtype"] = settings["dtype"]
    # What reads other states than before is new, and so is what follows.
    goes_on = is_own and "features" not in encoder_settings
    head = _head(checkpoint, cls, from_other_task) if goes_on else {}
    own_head = checkpoint.pipeline.get("head", _published_head(cls, checkpoint.architecture))
    needs_pooler = cls.needs_pooler and (settings.get("head") or own_head) == "pooler"
    encoder = encoder_of(checkpoint, needs_pooler=needs_pooler, **encoder_settings)
    if head and settings.get("head", own_head) not in (None, own_head):
        raise ValueError(
            f"`head` must be {own_head!r}, as that of {name_or_directory}. "
            f"Received: head={settings['head']!r}"
        )
    if hasattr(cls, "labels"):
        labels = getattr(labels, "tolist", lambda: labels)()  # of NumPy or pandas
        known = settings.get("labels") or (_labels(checkpoint, head) if head else None)
        if head and from_other_task and labels and _are_others(labels, known or ()):
            logger.warning(
                "%s has other labels: its encoder is taken, the head is new.", name_or_directory
            )
            head = {}
        settings["labels"] = (known or _labels(checkpoint, head)) if labels is None else labels
    if not head:  # a new one decides by numbers of its own
        settings = {k: v for k, v in settings.items() if k not in _OF_HEADS or k in kwargs}
    model = cls(encoder, tokenizer, **settings)
    if head or cls.head_may_be_partial:
        _assign_head(model, head, name_or_directory)
    return model


def _check_labels(cls: Any, labels: Any, given: dict[str, Any]) -> None:
    """Raises a ValueError for a number of labels, or labels of a task that has none."""
    if "num_labels" in given:
        message = "`labels` must be given, the names of the classes, in the place of `num_labels`."
        raise ValueError(f"{message} Received: num_labels={given['num_labels']!r}")
    if labels is not None and not hasattr(cls, "labels"):
        raise ValueError(f"`labels` must be left out: {cls.__name__} has none. Received: {labels}")


def _published_head(cls: Any, architecture: str) -> str:
    """Returns the head of a task's class on an encoder, which Hugging Face's has too."""
    if cls.head_form is None:
        return "pooler"
    return str(getattr(encoder_class(architecture), cls.head_form).head)


def save_adapters(
    model: Any, directory: str | os.PathLike[str], base: str, dtype: str = "float16"
) -> Path:
    """Writes a text model's changes to a published encoder: adapters, head, changed weights.

    `base` is the name of the encoder that its training started from, of the same size, and `dtype`
    that of the written weights, "float16" or "float32". `from_pretrained` reads the directory where
    the base can be found.
    """
    checkpoint = pipeline_checkpoint(model)
    checkpoint.pipeline = _pipeline_config(model)
    return write_adapters(checkpoint, read_checkpoint(base), base, directory, dtype)


def pipeline_checkpoint(model: Any) -> Checkpoint:
    """Returns the weights of encoder and head as named arrays, with the vocabulary."""
    checkpoint = model.encoder.to_checkpoint()
    put_tokenizer(model.tokenizer, checkpoint)
    for name, layer in model.head_layers().items():
        _check_head_layer(model, name, layer)
        for part, (variable, transposed) in _parts(layer).items():
            array = np.asarray(variable)
            array = np.ascontiguousarray(array.T) if transposed else array
            checkpoint.heads[f"{name}.{part}"] = array
    return checkpoint


def _check_head_layer(model: Any, name: str, layer: Any) -> None:
    """Checks that a saved layer would be read again, with all of its weights."""
    known = [variable for variable, _ in _parts(layer).values()]
    others = [v.path for v in layer.weights if not any(v is one for one in known)]
    if others:
        raise ValueError(
            f"`{type(model).__name__}.head_layers()` must have no other weights than kernel, bias, "
            f"gamma and beta. Received: {', '.join(others)} in {name!r}"
        )
    if not f"{name}.".startswith(model.head_names):
        raise ValueError(
            f"`{type(model).__name__}.head_names` must have the beginnings of the names of "
            f"`head_layers()`. Received: {model.head_names} for {name!r}"
        )


def save_pipeline(
    model: Any, directory: str | os.PathLike[str], format: str, overwrite: bool = False
) -> Path:
    """Writes a text model; see `TaskModel.save_pretrained`."""
    if format not in model.formats:
        known = " or ".join(f'"{name}"' for name in model.formats)
        near = nearest(format, model.formats)
        raise ValueError(f"`format` must be {known}. Received: format={format!r}.{near}")
    checkpoint = pipeline_checkpoint(model)
    if format == "kbert":
        checkpoint.pipeline = _pipeline_config(model)
    if format in ("kbert", "tf1"):
        return write_checkpoint(checkpoint, directory, format, overwrite)
    checkpoint.check_format(format)
    own_head = _published_head(model, checkpoint.architecture)
    if getattr(model, "head", own_head) != own_head:
        raise ValueError(
            f'`head` must be "{own_head}" for format "huggingface", which knows no other. '
            f"Received: head={model.head!r}"
        )
    checkpoint.source_config = model.huggingface_config()
    checkpoint.source_config |= _unusual_settings(model, checkpoint)
    architecture = model.huggingface_architecture
    if architecture is None:
        raise ValueError(
            f"`format` must be \"kbert\" for a {type(model).__name__}, of which Hugging Face has "
            f"none. Received: format={format!r}"
        )
    return write_checkpoint(checkpoint, directory, format, overwrite, architecture=architecture)


def _pipeline_config(model: Any) -> dict[str, Any]:
    left = ("name", "trainable", "dtype", "encoder", "tokenizer")
    config = {name: value for name, value in model.get_config().items() if name not in left}
    config = {n: v.item() if isinstance(v, np.generic) else v for n, v in config.items()}
    return {"class": type(model).__name__, **config, **settings_of(model.tokenizer)}


def _unusual_settings(model: Any, checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns the entry of settings that transformers lacks; none where all are the usual ones."""
    cls, positions = type(model), checkpoint.config["max_sequence_length"]
    usual = {n: one.default for n, one in inspect.signature(cls.__init__).parameters.items()}
    usual |= model.batching_type.default_lengths(cls, positions) | cls.default_settings(checkpoint)
    found, names = _pipeline_config(model), set(cls.arguments) - {"labels", "head"}
    own = {name: found[name] for name in sorted(names) if found[name] != usual.get(name)}
    return {_OWN: {"class": cls.__name__, **own}} if own else {}


def _own_settings(checkpoint: Checkpoint, cls: Any) -> dict[str, Any]:
    """Returns the settings that `_unusual_settings` wrote for a class."""
    own: Any = checkpoint.source_config.get(_OWN)
    is_own = isinstance(own, dict) and own.get("class") == cls.__name__ and not checkpoint.pipeline
    return {name: own[name] for name in cls.arguments if name in own} if is_own else {}


def _check_other_task(checkpoint: Checkpoint, cls: Any, source: Any, is_allowed: bool) -> None:
    """Rejects another task's model unless its encoder is asked for; pretrained models pass."""
    saved_class = checkpoint.pipeline["class"]
    if saved_class == PRETRAINED:
        return
    if not is_allowed:
        raise ValueError(
            f"`name_or_directory` must hold a {cls.__name__} or an encoder. Received: "
            f"{source}, a {saved_class} (`from_other_task=True` takes its encoder)"
        )
    logger.warning("%s is a %s: its encoder is taken, the head is new.", source, saved_class)


def _parts(layer: Any) -> dict[str, tuple[Any, bool]]:
    """Returns Hugging Face's name of each weight -> the weight, and whether it is transposed."""
    named = {"kernel": "weight", "gamma": "weight", "bias": "bias", "beta": "bias"}
    return {
        part: (getattr(layer, own), own == "kernel")
        for own, part in named.items()
        if getattr(layer, own, None) is not None
    }


def _head(checkpoint: Checkpoint, cls: Any, may_be_new: bool) -> dict[str, np.ndarray]:
    """Returns the arrays of the head; none where the checkpoint's head is another task's."""
    known = (None, *cls.huggingface_architectures())
    if not checkpoint.pipeline and checkpoint.head_class not in known:
        return {}
    problem = checkpoint.source_config.get("problem_type")
    if problem in _PROBLEMS and problem not in cls.problem_types:
        if may_be_new:
            logger.warning("A head for %s: its encoder is taken, the head is new.", problem)
            return {}
        raise ValueError(
            f"`problem_type` of a classification head must be {' or '.join(cls.problem_types)}. "
            f"Received: {problem} (`kbert.load` takes any, `from_other_task=True` the encoder)"
        )
    return {n: array for n, array in checkpoint.heads.items() if n.startswith(cls.head_names)}


def _labels(checkpoint: Checkpoint, head: dict[str, np.ndarray]) -> list[str]:
    """Returns the class names of a Hugging Face configuration."""
    if not head:
        raise ValueError(
            "`labels` must be given for an encoder without a classification head. Received: None"
        )
    named = checkpoint.source_config.get("id2label") or {}
    count = head["classifier.weight"].shape[0]
    return [str(named.get(str(i), named.get(i, f"LABEL_{i}"))) for i in range(count)]


def _are_others(labels: Sequence[str], known: Sequence[str]) -> bool:
    """Returns whether labels are not those of a head; it may have none but numbers."""
    unnamed = list(known) == [f"LABEL_{i}" for i in range(len(labels))]
    return not unnamed and list(labels) != list(known)


def _assign_head(model: Any, head: dict[str, np.ndarray], source: Any) -> None:
    """Assigns arrays to a head; a layer without any may keep its random initialization."""
    layers = model.head_layers()
    known = {f"{name}.{part}" for name, layer in layers.items() for part in _parts(layer)}
    unknown = [n for n in head if n not in known and n.startswith(tuple(f"{x}." for x in layers))]
    if unknown:
        raise ValueError(
            f"{source}: the head must have no other weights than {', '.join(sorted(known))}. "
            f"Not known: {', '.join(unknown)}"
        )
    new = []
    for name, layer in layers.items():
        parts = _parts(layer)
        if model.head_may_be_partial and not any(f"{name}.{part}" in head for part in parts):
            new.append(name)
            continue
        for part, (variable, transposed) in parts.items():
            array = head.get(f"{name}.{part}")
            shape = tuple(variable.shape)[:: -1 if transposed else 1]
            if array is None or array.shape != shape:
                received = None if array is None else array.shape
                raise ValueError(
                    f"{source}: the head `{name}` must have a {part} of shape {shape}. "
                    f"Received: {received}. `from_other_task=True` takes the encoder alone"
                )
            array = array.T if transposed else array
            variable.assign(array.astype(variable.dtype))
    if new:
        logger.warning("%s has no %s: new, random weights are taken.", source, ", ".join(new))
