"""Loads a saved text model whatever its task is."""

import os
from typing import Any

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.pipelines.classification import Classifier
from kbert.pipelines.multiple_choice import MultipleChoice
from kbert.pipelines.regression import Regressor

_CLASSES: dict[str, Any] = {c.__name__: c for c in (Classifier, Regressor, MultipleChoice)}


def load(directory: str | os.PathLike[str], **kwargs: Any) -> Any:
    """Loads a model that `save_pretrained` wrote, or a Hugging Face one with a head.

    Args:
        directory: the directory.
        **kwargs: arguments of the class, such as `dtype`.

    Returns:
        A `Classifier`, `Regressor` or `MultipleChoice`.

    Raises:
        ValueError: it holds an encoder alone, or a task that this version does not know.
    """
    checkpoint = read_checkpoint(directory)
    name = checkpoint.pipeline.get("class") or _class_of_huggingface(checkpoint)
    if name not in _CLASSES:
        raise ValueError(
            f"`directory` must hold one of {list(_CLASSES)}. Received: {directory}, "
            f"{'an encoder without a task' if name is None else name}"
        )
    return _CLASSES[name].from_pretrained(directory, **kwargs)


def _class_of_huggingface(checkpoint: Any) -> str | None:
    architectures = checkpoint.source_config.get("architectures") or [None]
    if architectures[0] == "BertForMultipleChoice":
        return "MultipleChoice"
    if architectures[0] != "BertForSequenceClassification":
        return None
    outputs = checkpoint.heads["classifier.weight"].shape[0]
    return "Regressor" if outputs == 1 else "Classifier"
