"""The values of a run's configuration against each other."""

from typing import Any

from kbert.metrics.glue_names import glue_task_name
from kbert.models.sizes import BERT_SIZES
from kbert.training.config.configuration import wrong
from kbert.training.config.parts import TPU

READING_TASKS = ("question-answering", "span-tagging", "ner")
TASKS = ("classification", "regression", "multiple-choice", *READING_TASKS)
# The class of each task's model, by name: a configuration knows no Keras.
CLASSES = {
    "classification": "Classifier",
    "regression": "Regressor",
    "multiple-choice": "MultipleChoice",
    "question-answering": "QuestionAnswerer",
    "span-tagging": "SpanTagger",
    "ner": "EntityRecognizer",
}
SCRATCH = "scratch:"
TFDS = "tfds:"
# What only the tasks that read have.
_READING = (
    "stride",
    "max_question_length",
    "max_answer_length",
    "adapter_dim",
    "all_occurrences",
    "other_windows",
)
# And of these not all.
_NOT_OF = {
    "span-tagging": ("max_answer_length", "all_occurrences"),
    "ner": ("max_question_length", "max_answer_length", "all_occurrences", "other_windows"),
}


def check_values(config: Any) -> None:
    """Checks the values of a configuration against each other.

    Args:
        config: A `RunConfig` whose single values have been checked.

    Raises:
        ValueError: Two of them contradict each other, or one is missing.
    """
    _check_model(config)
    _check_data(config)
    _check_choices(config)


def _check_model(config: Any) -> None:
    if config.encoder is None:
        raise wrong("encoder", "given: a name, a folder, or scratch:SIZE", None)
    size = config.scratch_size
    if size is not None and size not in BERT_SIZES:
        raise wrong("encoder", f"scratch: and one of {', '.join(BERT_SIZES)}", config.encoder)
    if size is not None and config.vocabulary is None:
        raise wrong("vocabulary", f"given with encoder={config.encoder!r}", None)


def _check_data(config: Any) -> None:
    if config.glue is not None:
        is_score = glue_task_name(config.glue) == "stsb"
        expected = "regression" if is_score else "classification"
        if config.task != expected:
            raise wrong("task", f"{expected} with glue={config.glue!r}", config.task)
        if config.data is None:
            raise wrong("data", f"the folder of GLUE with glue={config.glue!r}", None)
    elif config.train is None:
        raise wrong("train", "given: a file or tfds:NAME (or give glue and data)", None)
    if config.task == "multiple-choice":
        for key in ("train", "validation", "test"):
            if str(getattr(config, key)).startswith(TFDS):
                raise wrong(key, "a file with task='multiple-choice'", getattr(config, key))
        if config.batch_tokens is not None:
            raise wrong(
                "batch_tokens", "left out with task='multiple-choice'", config.batch_tokens
            )
        if config.strategy == TPU:
            expected = "another one with task='multiple-choice': its batches have no fixed shapes"
            raise wrong("strategy", expected, config.strategy)


def _check_choices(config: Any) -> None:
    if config.task not in READING_TASKS:
        for key in _READING:
            given = getattr(config, key)
            if given is not None and given is not False:  # 0 is given too
                raise wrong(key, f"left out with task={config.task!r}", given)
    for key in _NOT_OF.get(config.task, ()):
        if getattr(config, key) not in (None, False):
            raise wrong(key, f"left out with task={config.task!r}", getattr(config, key))
    for key, given in (("grid", config.grid), ("strategy", config.strategy == TPU)):
        if given and config.batch_tokens is not None:
            raise wrong(
                "batch_tokens", f"left out with {key}={getattr(config, key)}", config.batch_tokens
            )
    if config.task != "classification":
        for key in ("class_weights", "labels"):
            if getattr(config, key) not in (None, "none"):
                raise wrong(key, f"left out with task={config.task!r}", getattr(config, key))
    if config.glue is None and config.validation is None:
        for key in ("early_stopping", "monitor", "grid"):
            if getattr(config, key) not in (None, False):
                raise wrong(key, "left out where there is no validation", getattr(config, key))
