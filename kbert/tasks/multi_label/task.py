"""The task multi-label: any number of labels for texts and pairs of texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.classification.label_sets import (
    SEPARATOR,
    check_label_set_columns,
    check_label_sets,
    label_set_names,
    label_set_targets,
    read_label_set_examples,
)
from kbert.options.configuration import wrong
from kbert.tasks.classification.task import MULTI_LABEL as PROBLEM_TYPE
from kbert.tasks.classification.task import TextTask
from kbert.tasks.options import FEATURE_OPTIONS

THRESHOLD = 0.5


@dataclass(frozen=True)
class LabelSet:
    """The labels of a text, the most likely first, and the probabilities of all labels."""

    labels: list[str]
    probabilities: dict[str, float]
    truncated: bool | None = None


class MultiLabelTask(TextTask):
    """The task of giving texts and pairs of texts any number of labels."""

    name = "multi-label"
    model_name = "MultiLabelClassifier"
    module = "kbert.tasks.multi_label.model"
    does = "says which of its labels, if any, a text, or a pair of texts, has"
    page = "multi_label"
    outputs = ("labels", "probabilities", "chosen")
    answer_keys = ("labels", "probabilities")
    settings = ("head", "dropout", "threshold")
    options = (
        *("class_weights", "labels", "label_separator", "threshold", "tune_thresholds"),
        *FEATURE_OPTIONS,
    )
    reading = ("label_separator",)
    compared = ("micro_f1", "macro_f1", "exact_match", "cross_entropy")
    has_thresholds = True

    def is_of_glue(self, name: str) -> bool:
        return False

    def glue_of(self, config: Any) -> str | None:
        return None

    def is_answer(self, answer: Mapping[str, Any]) -> bool:
        return super().is_answer(answer) and isinstance(answer["probabilities"], dict)

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        names, chosen = plain.pop("labels"), plain.pop("chosen")
        return {**label_answer(names, plain.pop("probabilities"), chosen), **plain}

    def typed_answer(self, answer: Mapping[str, Any]) -> LabelSet:
        return LabelSet(answer["labels"], answer["probabilities"], answer.get("truncated"))

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        is_head = architecture == "BertForSequenceClassification"
        return is_head and checkpoint.source_config.get("problem_type") == PROBLEM_TYPE

    def check(self, config: Any) -> None:
        if config.tune_thresholds and config.validation is None:
            raise wrong("tune_thresholds", "false where there is no validation", True)
        if config.tune_thresholds and config.threshold != THRESHOLD:
            raise wrong("threshold", "left out with tune_thresholds=True", config.threshold)

    def check_columns(self, path: str, columns: Mapping[str, Any]) -> None:
        names = ("text_a", "text_b", "label")
        check_label_set_columns(path, **{name: columns.get(name) for name in names})

    def read_file(self, path: str, config: Any, part: str) -> Any:
        columns = (config.text_a, config.text_b, config.label)
        separator = config.label_separator
        return read_label_set_examples(path, *columns, separator=separator, labeled=True)

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> Any:
        from kbert.data.tfds_label_sets import read_tfds_label_sets

        columns = {"text_a": config.text_a, "text_b": config.text_b, "label": config.label}
        named: Any = {key: str(value) for key, value in columns.items() if value is not None}
        return read_tfds_label_sets(name, split, config.data, **named)

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        given = {name: value for name, value in columns.items() if name not in self.reading}
        separator = columns.get("label_separator") or SEPARATOR
        return read_label_set_examples(path, **given, separator=separator)

    def labels(self, config: Any, train: Any, glue: str | None) -> list[str] | None:
        found = label_set_names(train) if config.labels is None else list(config.labels)
        given = config.threshold if isinstance(config.threshold, dict) else {}
        unknown = [name for name in given if name not in found]
        if unknown:
            raise ValueError(
                f"`threshold` must have labels as keys: {', '.join(found)}. Received: "
                f"{', '.join(unknown)}"
            )
        return found

    def check_part(self, part: str, examples: Any, train: Any, labels: list[str] | None) -> None:
        super().check_part(part, examples, train, None)
        check_label_sets(examples, labels or [])

    def label_counts(self, examples: Any, labels: Sequence[str]) -> dict[str, float]:
        counts = self.targets(examples, labels).sum(axis=0, dtype="float64")
        is_whole = (counts == np.floor(counts)).all()
        counts = counts.astype("int64") if is_whole else np.round(counts, 3)
        return dict(zip(labels, counts.tolist()))

    def balanced_weights(self, counts: Mapping[str, float], examples: int) -> dict[str, float]:
        # Of each label, positive and negative targets have the same total weight.
        every = [name for name, count in counts.items() if count == examples]
        if every:
            raise ValueError(
                "`class_weights` must not be balanced where all training examples have a label. "
                f"Received: {', '.join(every)}"
            )
        return {name: (examples - count) / count for name, count in counts.items()}

    def weighted_loss(self, weights: Mapping[str, float]) -> Any:
        from kbert.optimization.label_losses import SigmoidCrossEntropy

        return SigmoidCrossEntropy(list(weights.values()))

    def target_spec(self, rows: int, labels: Sequence[str] | None) -> Any:
        import tensorflow as tf

        return tf.TensorSpec((rows, len(labels or ())), "float32")

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        from kbert.tasks.multi_label.inputs import PreparedLabels

        def measured(right: Any, predictions: Any, thresholds: Any) -> dict[str, Any]:
            return self.measure_predictions(right, predictions, labels, thresholds=thresholds)

        labels = model.labels
        return PreparedLabels(
            self.inputs(model, examples), self.targets(examples, labels), measured
        )

    def targets(self, examples: Any, labels: Sequence[str] | None) -> np.ndarray:
        return label_set_targets(examples, labels or [])

    def measure_predictions(
        self,
        right: np.ndarray,
        predictions: np.ndarray,
        labels: Sequence[str] | None,
        glue: str | None = None,
        thresholds: Any = None,
    ) -> dict[str, Any]:
        from kbert.metrics.label_sets import label_set_metrics

        bounds = THRESHOLD if thresholds is None else thresholds
        return label_set_metrics(right, predictions, list(labels or []), bounds)

    def thresholds(self, model: Any) -> np.ndarray:
        return np.array(list(model.thresholds.values()))


def label_answer(
    names: Sequence[str], probabilities: Sequence[float], chosen: Sequence[bool]
) -> dict[str, Any]:
    """Returns the answer for one text: its labels, the most likely first, and all probabilities."""
    rows = zip(names, probabilities, chosen)
    found = sorted(((p, name) for name, p, is_there in rows if is_there), key=lambda one: -one[0])
    return {
        "labels": [name for _, name in found],
        "probabilities": dict(zip(names, probabilities)),
    }


TASK = MultiLabelTask()
