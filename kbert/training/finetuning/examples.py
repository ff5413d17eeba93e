"""The examples of a run, read and checked as a whole before anything is trained."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.classification.glue_tasks import glue_task, read_glue
from kbert.data.classification.labels import (
    check_labels,
    label_names,
    label_probabilities,
    required_labels,
)
from kbert.data.classification.multiple_choice import ChoiceExamples, read_choice_examples
from kbert.data.classification.text_pairs import TextExamples, read_text_examples
from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import QuestionExamples
from kbert.data.tfds.sources import read_tfds
from kbert.metrics.glue_names import GLUE_METRICS
from kbert.training.config.finetuning_checks import READING_TASKS, TFDS
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.finetuning.reading_examples import read_reading, tag_names
from kbert.training.resume.resumed_run import sha256_of_columns
from kbert.training.runs.run_log import tell_stage

LabelledExamples = TextExamples | ChoiceExamples
Examples = LabelledExamples | QuestionExamples | TaggedSentences
# What a split is called where the source is asked for it and no name is given.
_GLUE_SPLITS = {"train": "train", "validation": "dev", "test": None}
# What the report of a run calls a hash of a part; of the examples as a model reads them it has
# another one.
_HASHES = {
    "train": "examples_sha256",
    "validation": "validation_sha256",
    "test": "test_sha256",
}
_TFDS_SPLITS = {"train": "train", "validation": "validation", "test": "test"}


@dataclass(frozen=True)
class RunData:
    """What a run learns from and is measured on.

    Attributes:
        train: The training examples.
        validation: The validation examples, or None.
        test: The test examples, or None.
        labels: The class names or tags in the model's order; None for scores, choices, questions.
        glue: The GLUE task whose official metrics apply, or None.
    """

    train: Examples
    validation: Examples | None
    test: Examples | None
    labels: list[str] | None
    glue: str | None

    @property
    def parts(self) -> dict[str, Examples]:
        """The parts that are there, by name."""
        every = {"train": self.train, "validation": self.validation, "test": self.test}
        return {name: examples for name, examples in every.items() if examples is not None}

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of the parts, by their names in a run's report."""
        return {_HASHES[name]: sha256_of_columns(part) for name, part in self.parts.items()}

    @property
    def pair(self) -> bool:
        """Whether each example is a pair of texts."""
        return isinstance(self.train, TextExamples) and self.train.text_b is not None


def read_run_data(config: RunConfig) -> RunData:
    """Reads all examples of a run and checks them against each other.

    Args:
        config: The run's configuration.

    Raises:
        ValueError: A file, a column or a label is wrong, a part is empty or has no labels, or
            single texts and pairs are mixed; the message names the file and the line.
        FileNotFoundError: A file is missing.
    """
    if config.task in READING_TASKS:
        return _reading_data(config)
    train = _read(config, "train")
    validation, test = _read(config, "validation"), _read(config, "test")
    if train is None:
        raise ValueError("`train` must be given. Received: train=None")
    glue = _glue_of(config)
    data = RunData(train, validation, test, _labels(config, train, glue), glue)
    for part, examples in data.parts.items():
        required_labels(examples)  # type: ignore[arg-type]  # it asks for what all have
        if data.labels is not None and isinstance(examples, TextExamples):
            check_labels(examples, data.labels)
        _check_shape(part, examples, train)
    return data


def _reading_data(config: RunConfig) -> RunData:
    """The examples of a task that reads."""
    parts = [read_reading(config, part) for part in ("train", "validation", "test")]
    train = parts[0]
    if train is None:
        raise ValueError("`train` must be given. Received: train=None")
    labels = None
    if isinstance(train, TaggedSentences):
        labels = tag_names(train.labels, config.tag_scheme)
        for part in parts[1:]:
            if not isinstance(part, TaggedSentences):
                continue
            unknown = sorted(set(part.labels) - set(train.labels))
            if unknown:
                raise ValueError(
                    f"{part.source}: the types must be among those of training, "
                    f"{', '.join(train.labels)}. Received: {', '.join(unknown)}"
                )
    return RunData(train, parts[1], parts[2], labels, None)


def targets(examples: LabelledExamples, labels: Sequence[str] | None) -> np.ndarray:
    """Returns what a model learns to predict for examples.

    Args:
        examples: Examples with labels.
        labels: The class names in the model's order; None for scores and choices.

    Returns:
        int64 (n,) class or choice ids; float32 (n,) scores; float32 (n, C) soft labels.
    """
    values = required_labels(examples)  # type: ignore[arg-type]  # it asks for what all have
    if isinstance(examples, ChoiceExamples):
        return np.asarray(values, "int64")
    if labels is None:
        return np.asarray(values, "float32")
    if isinstance(values[0], (dict, list)):
        return label_probabilities(examples, labels)
    check_labels(examples, labels)
    ids = {name: i for i, name in enumerate(labels)}
    return np.asarray([ids[value] for value in values], "int64")


def class_weights(config: RunConfig, data: RunData) -> dict[str, float] | None:
    """Returns a weight for each label, or None where all weigh the same.

    "balanced" is n / (C n_c), so that each class weighs the same in all and the mean weight of an
    example is 1. Soft labels count by their probabilities.

    Args:
        config: The run's configuration.
        data: The run's examples.

    Raises:
        ValueError: A weight is given for an unknown label, or a label has none or no example.
    """
    chosen = config.class_weights
    if chosen == "none" or data.labels is None or not isinstance(data.train, TextExamples):
        return None
    if isinstance(chosen, dict):
        if set(chosen) != set(data.labels):
            raise ValueError(
                f"`class_weights` must give one weight for each label: {', '.join(data.labels)}. "
                f"Received: {', '.join(chosen)}"
            )
        return {name: float(chosen[name]) for name in data.labels}
    counts = label_counts(data.train, data.labels)
    empty = [name for name, count in counts.items() if count == 0]
    if empty:
        raise ValueError(
            f"`class_weights` must not be balanced where a label has no training example. "
            f"Received: none for {', '.join(empty)}"
        )
    total = sum(counts.values())
    return {name: total / (len(counts) * count) for name, count in counts.items()}


def label_counts(examples: LabelledExamples, labels: Sequence[str]) -> dict[str, float]:
    """Returns how many examples each label has; soft labels count by their probabilities.

    Args:
        examples: Examples with class labels.
        labels: The class names in the model's order.
    """
    right = targets(examples, labels)
    if right.ndim == 2:
        return dict(zip(labels, np.round(right.sum(axis=0), 3).tolist()))
    found = Counter(right.tolist())
    return {name: found[i] for i, name in enumerate(labels)}


def _read(config: RunConfig, part: str) -> LabelledExamples | None:
    """One part of the examples, or None where the configuration has none."""
    given = getattr(config, part)
    if config.glue is not None and not str(given).startswith(TFDS):
        split = given if given is not None else _GLUE_SPLITS[part]
        if split is None:
            return None
        if config.data is None:
            raise ValueError("`data` must be the folder of GLUE. Received: data=None")
        tell_stage(f"reading {config.glue}, {split}")
        return read_glue(config.glue, config.data, split)
    if given is None:
        return None
    tell_stage(f"reading {given}")
    if given.startswith(TFDS):
        name, _, split = given.removeprefix(TFDS).partition("@")
        columns = {"text_a": config.text_a, "text_b": config.text_b, "label": config.label}
        named: Any = {key: str(value) for key, value in columns.items() if value is not None}
        return read_tfds(name, split or _TFDS_SPLITS[part], config.data, **named)
    if config.task == "multiple-choice":
        return read_choice_examples(given, labeled=True)
    return read_text_examples(
        given,
        config.text_a,
        config.text_b,
        config.label,
        regression=config.task == "regression",
        labeled=True,
    )


def _glue_of(config: RunConfig) -> str | None:
    """The GLUE task of the data, also where they come from TFDS."""
    if config.glue is not None:
        return glue_task(config.glue).name
    prefix, train = f"{TFDS}glue/", config.train or ""
    name = train.removeprefix(prefix).partition("@")[0].partition(":")[0]
    return name if train.startswith(prefix) and name in GLUE_METRICS else None


def _labels(config: RunConfig, train: LabelledExamples, glue: str | None) -> list[str] | None:
    """The class names in the model's order."""
    if config.task != "classification" or not isinstance(train, TextExamples):
        return None
    if config.labels is not None:
        return list(config.labels)
    if glue is not None:
        return list(glue_task(glue).labels)
    if isinstance(required_labels(train)[0], list):
        raise ValueError(
            "`labels` must be given where the labels are lists of probabilities without names. "
            "Received: labels=None"
        )
    found = label_names(train)
    if len(found) < 2:
        raise ValueError(
            f"{train.source}: the training examples must have two labels or more. Received: "
            f"{', '.join(map(repr, found))}"
        )
    return found


def _check_shape(part: str, examples: Examples, train: Examples) -> None:
    """Parts must be of one shape: all pairs or none, as many choices."""
    if isinstance(examples, ChoiceExamples) and isinstance(train, ChoiceExamples):
        if examples.num_choices != train.num_choices:
            raise ValueError(
                f"{examples.source}: each example must have {train.num_choices} choices, as in "
                f"training. Received: {examples.num_choices}"
            )
    elif isinstance(examples, TextExamples) and isinstance(train, TextExamples):
        if (examples.text_b is None) != (train.text_b is None):
            kinds = ("single texts", "pairs of texts")
            raise ValueError(
                f"{examples.source}: the {part} examples must be "
                f"{kinds[train.text_b is not None]}, as those of training. Received: "
                f"{kinds[examples.text_b is not None]}"
            )
