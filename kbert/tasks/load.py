"""Loads a saved text model whatever its task is."""

import os
from pathlib import Path
from typing import Any

import keras

from kbert.checkpoints.marian.files import is_marian
from kbert.checkpoints.native.translation_folder import is_translation
from kbert.checkpoints.pretrained import model_folder
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.pipelines.base.saved_pipeline import load_pipeline
from kbert.tasks.classification.model import Classifier
from kbert.tasks.multiple_choice.model import MultipleChoice
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.regression.model import Regressor
from kbert.tasks.span_tagging.model import TAGS, SpanTagger
from kbert.tasks.translation.model import Translator

_CLASSES: dict[str, Any] = {
    c.__name__: c
    for c in (
        Classifier,
        Regressor,
        MultipleChoice,
        QuestionAnswerer,
        SpanTagger,
        EntityRecognizer,
        MaskedLanguageModel,
    )
}
_HUGGINGFACE = {
    **dict.fromkeys(MaskedLanguageModel.huggingface_architectures(), "MaskedLanguageModel"),
    "BertForMultipleChoice": "MultipleChoice",
    "BertForQuestionAnswering": "QuestionAnswerer",
    "BertForTokenClassification": "EntityRecognizer",
}


def load(directory: str | os.PathLike[str], **kwargs: Any) -> Any:
    """Loads what `save_pretrained` or `save` wrote; of Hugging Face, Marian or a model with a head.

    `keras.models.load_model` does the same for a `.keras` file once kbert is imported.

    Args:
        directory: the directory, that of a finished run, or a file of the model's `save`.
        **kwargs: arguments of the class, such as `dtype`; with a file, of
            `keras.models.load_model`.

    Returns:
        A model of one of the classes of this package on raw texts.

    Raises:
        ValueError: it holds an encoder alone, or a task that this version does not know.
        FileNotFoundError: there is no such folder, file or name.
    """
    if Path(directory).suffix == ".keras":
        if not Path(directory).is_file():
            raise FileNotFoundError(
                f"`directory` must be there. Received: {os.fspath(directory)!r}, no such file"
            )
        return keras.models.load_model(directory, **kwargs)
    directory = model_folder(directory)
    if is_translation(directory) or is_marian(directory):
        return Translator.from_pretrained(directory, **kwargs)
    checkpoint = read_checkpoint(directory)
    name = checkpoint.pipeline.get("class") or _class_of_huggingface(checkpoint)
    if name not in _CLASSES:
        raise ValueError(
            f"`directory` must hold one of {list(_CLASSES)}. Received: {directory}, "
            f"{'an encoder without a task' if name is None else name}"
        )
    return load_pipeline(_CLASSES[name], directory, checkpoint=checkpoint, **kwargs)


def _class_of_huggingface(checkpoint: Any) -> str | None:
    architectures = checkpoint.source_config.get("architectures") or [None]
    if architectures[0] == "BertForTokenClassification":
        named = checkpoint.source_config.get("id2label") or {}
        if list(named.values()) == list(TAGS):
            return "SpanTagger"
    if architectures[0] is None and "cls.predictions.bias" in checkpoint.heads:
        return "MaskedLanguageModel"  # of a format that names no class
    if architectures[0] in _HUGGINGFACE:
        return _HUGGINGFACE[architectures[0]]
    if architectures[0] != "BertForSequenceClassification":
        return None
    outputs = checkpoint.heads["classifier.weight"].shape[0]
    return "Regressor" if outputs == 1 else "Classifier"
