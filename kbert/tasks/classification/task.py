"""The task classification: classes of texts and of pairs of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.classification.labels import (
    check_labels,
    finite_number,
    label_names,
    label_probabilities,
    required_labels,
)
from kbert.data.classification.text_pairs import (
    TextExamples,
    check_text_columns,
    read_text_examples,
    usual_columns,
)
from kbert.metrics.glue_names import GLUE_METRICS, glue_task_name
from kbert.tasks.finetuned_task import DATASETS, TFDS, FinetunedTask
from kbert.tasks.options import FEATURE_OPTIONS

# GLUE's splits of the parts for which no name is given.
_GLUE_SPLITS = {"train": "train", "validation": "dev", "test": None}
SCORED = "stsb"
# Of Hugging Face's configurations of heads with several labels a text.
MULTI_LABEL = "multi_label_classification"
# Of examples without and with a second text.
_KINDS = ("single texts", "pairs of texts")


@dataclass(frozen=True)
class Classification:
    """The class of a text: its name, its probability, and the probabilities of all classes."""

    label: str
    score: float
    scores: dict[str, float]
    truncated: bool | None = None


class TextTask(FinetunedTask):
    """Base class of classification and regression: files, GLUE, TFDS, and tokenization."""

    settings: tuple[str, ...] = ("head", "dropout")
    averages = True
    fixed_length = 128
    is_regression = False

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        check_text_columns(path, **columns, regression=self.is_regression)

    def is_of_glue(self, name: str) -> bool:
        return (glue_task_name(name) == SCORED) == self.is_regression

    def check_glue(self, config: Any, part: str) -> None:
        from kbert.data.classification.glue_tasks import check_glue

        split = _glue_split(config, part)
        if split is not None:
            check_glue(config.glue, config.data or "", split)

    def glue_of(self, config: Any) -> str | None:
        if config.glue is not None:
            return glue_task_name(config.glue)
        # The same data may come from TFDS.
        prefix, train = f"{TFDS}glue/", config.train or ""
        name = train.removeprefix(prefix).partition("@")[0].partition(":")[0]
        return name if train.startswith(prefix) and name in GLUE_METRICS else None

    def source(self, config: Any, part: str) -> str | None:
        split = _glue_split(config, part)
        return super().source(config, part) if split is None else f"{config.glue}, {split}"

    def read(self, config: Any, part: str) -> TextExamples:
        split = _glue_split(config, part)
        if split is None:
            found: TextExamples = super().read(config, part)
            return found
        if config.data is None:
            raise ValueError("`data` must be the folder of GLUE. Received: data=None")
        from kbert.data.classification.glue_tasks import read_glue

        return read_glue(config.glue, config.data, split)

    def read_file(self, path: str, config: Any, part: str) -> TextExamples:
        columns = {key: getattr(config, key) for key in ("text_a", "text_b", "label")}
        return read_text_examples(path, **columns, regression=self.is_regression, labeled=True)

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> TextExamples:
        from kbert.data.tfds_examples import read_tfds

        columns = {"text_a": config.text_a, "text_b": config.text_b, "label": config.label}
        named: Any = {key: str(value) for key, value in columns.items() if value is not None}
        found = read_tfds(name, split, config.data, **named)
        wrong = [x for x in found.labels or () if self.is_regression and finite_number(x) is None]
        if wrong:
            raise ValueError(
                f"{found.source}: `label` must be a feature of numbers for {self.name}. Received: "
                f"{wrong[0]!r}"
            )
        return found

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        required_labels(examples)
        if labels is not None:
            check_labels(examples, labels)
        if (examples.text_b is None) != (train.text_b is None):
            raise ValueError(
                f"{examples.source}: the {part} examples must be "
                f"{_KINDS[train.text_b is not None]}, as those of training. Received: "
                f"{_KINDS[examples.text_b is not None]}"
            )

    def model_settings(self, config: Any, train: Any) -> dict[str, Any]:
        return {"pair": train.text_b is not None}

    def class_weights(
        self, config: Any, train: Any, labels: list[str] | None
    ) -> dict[str, float] | None:
        chosen = config.class_weights
        if chosen == "none" or labels is None:
            return None
        if isinstance(chosen, dict):
            if set(chosen) != set(labels):
                raise ValueError(
                    f"`class_weights` must give one weight for each label: {', '.join(labels)}. "
                    f"Received: {', '.join(chosen)}"
                )
            return {name: float(chosen[name]) for name in labels}
        counts = self.label_counts(train, labels) or {}
        empty = [name for name, count in counts.items() if count == 0]
        if empty:
            raise ValueError(
                f"`class_weights` must not be balanced where a label has no training example. "
                f"Received: none for {', '.join(empty)}"
            )
        return self.balanced_weights(counts, len(train))

    def balanced_weights(self, counts: Mapping[str, float], examples: int) -> dict[str, float]:
        """Returns the weights of labels that so many of the examples have, none of them 0."""
        raise NotImplementedError(f"{type(self).__name__} must say what balances its labels")

    def inputs(self, model: Any, examples: Any) -> Any:
        from kbert.tasks.inputs import PackedInput

        if not isinstance(examples, TextExamples):
            raise ValueError(
                f"{examples.source}: the examples must be texts for a {type(model).__name__}. "
                "Received: multiple choice"
            )
        if model.pair != (examples.text_b is not None):
            raise ValueError(
                f"{examples.source}: the examples must be {_KINDS[model.pair]}, as the model was "
                f"trained on. Received: {_KINDS[examples.text_b is not None]}"
            )
        texts = [examples.text_a] + ([] if examples.text_b is None else [examples.text_b])
        return PackedInput(model.pack(*texts))

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        return read_text_examples(path, **columns, regression=self.is_regression)

    def text_columns(self, config: Any) -> tuple[str | int | None, ...]:
        return (config.text_a, config.text_b)

    def usual_columns(self, count: int) -> list[list[str]]:
        return usual_columns(count)

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        columns = [examples.text_a] + ([] if examples.text_b is None else [examples.text_b])
        return list(zip(*columns))


class ClassificationTask(TextTask):
    """The task of classifying texts and pairs of texts."""

    name = "classification"
    model_name = "Classifier"
    module = "kbert.tasks.classification.model"
    does = "says which of its classes a text, or a pair of texts, belongs to"
    page = "classification"
    outputs = ("labels", "scores")
    answer_keys = ("label", "scores")
    options = ("class_weights", "labels", *FEATURE_OPTIONS)

    def is_answer(self, answer: Mapping[str, Any]) -> bool:
        return super().is_answer(answer) and isinstance(answer["scores"], dict)

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        labels = plain.pop("labels")
        plain["scores"] = dict(zip(labels, plain["scores"]))
        return plain

    def typed_answer(self, answer: Mapping[str, Any]) -> Classification:
        cut = answer.get("truncated")
        return Classification(answer["label"], answer["score"], answer["scores"], cut)

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return sequence_outputs(architecture, checkpoint) > 1

    def labels(self, config: Any, train: Any, glue: str | None) -> list[str] | None:
        if config.labels is not None:
            return list(config.labels)
        if glue is not None:
            from kbert.data.classification.glue_tasks import glue_task

            return list(glue_task(glue).labels)
        if isinstance(required_labels(train)[0], list):
            raise ValueError(
                "`labels` must be given where the labels are lists of probabilities without "
                "names. Received: labels=None"
            )
        found = label_names(train)
        if len(found) < 2:
            raise ValueError(
                f"{train.source}: the training examples must have two labels or more. Received: "
                f"{', '.join(map(repr, found))}"
            )
        return found

    def label_counts(self, examples: Any, labels: Sequence[str]) -> dict[str, float]:
        right = self.targets(examples, labels)
        if right.ndim == 2:  # soft labels count by their probabilities
            return dict(zip(labels, np.round(right.sum(axis=0), 3).tolist()))
        return dict(zip(labels, np.bincount(right, minlength=len(labels)).tolist()))

    def balanced_weights(self, counts: Mapping[str, float], examples: int) -> dict[str, float]:
        # n / (C n_c): each class has the same total weight, and the mean weight of an example is 1.
        total = sum(counts.values())
        return {name: total / (len(counts) * count) for name, count in counts.items()}

    def monitors(self, labels: Sequence[str] | None, validation: Any = None) -> list[str]:
        binary = ["f1"] if labels is not None and len(labels) == 2 else []
        return ["accuracy", "cross_entropy", "macro_f1", "matthews", *binary]

    def targets(self, examples: Any, labels: Sequence[str] | None) -> np.ndarray:
        names = labels or []
        values = required_labels(examples)
        if isinstance(values[0], (dict, list)):
            return label_probabilities(examples, names)
        check_labels(examples, names)
        ids = {name: i for i, name in enumerate(names)}
        return np.asarray([ids[value] for value in values], "int64")

    def measure_predictions(
        self,
        right: np.ndarray,
        predictions: np.ndarray,
        labels: Sequence[str] | None,
        glue: str | None = None,
        thresholds: Any = None,
    ) -> dict[str, Any]:
        from kbert.metrics.glue import classification_metrics, glue_metrics

        names = np.asarray(labels)
        ids = right.argmax(-1) if right.ndim == 2 else right  # of a soft label the most likely
        predicted = predictions.argmax(-1)
        found = classification_metrics(ids, predicted, list(names), predictions)
        if right.ndim == 2:  # the loss of training: of all classes, by their shares
            logs = np.log(np.clip(predictions, np.finfo("float64").eps, 1.0).astype("float64"))
            found["cross_entropy"] = float(-np.mean(np.sum(right * logs, axis=-1)))
        official = {} if glue is None else glue_metrics(glue, names[ids], names[predicted])
        others = {name: value for name, value in found.items() if name not in official}
        return {**official, **others}


def sequence_outputs(architecture: str | None, checkpoint: Any) -> int:
    """Returns the number of outputs of Hugging Face's sequence head, 0 for another head.

    One of several labels a text is another head.
    """
    is_head = architecture == "BertForSequenceClassification"
    if not is_head or checkpoint.source_config.get("problem_type") == MULTI_LABEL:
        return 0
    return int(checkpoint.heads["classifier.weight"].shape[0])


def _glue_split(config: Any, part: str) -> str | None:
    """Returns the GLUE split of a part, or None if it comes from elsewhere or does not exist."""
    given = getattr(config, part)
    if config.glue is None or str(given).startswith(DATASETS):
        return None
    return given if given is not None else _GLUE_SPLITS[part]


TASK = ClassificationTask()
