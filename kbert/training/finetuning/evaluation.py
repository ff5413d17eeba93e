"""Measuring a model on examples, with the metrics of its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import QuestionExamples
from kbert.metrics.glue import classification_metrics, glue_metrics, regression_metrics
from kbert.metrics.glue_names import GLUE_METRICS
from kbert.training.finetuning.examples import Examples, targets
from kbert.training.finetuning.inputs import RunInput, tokenized
from kbert.training.finetuning.reading_evaluation import MONITORED, PreparedReading, prepare_reading


@dataclass(frozen=True)
class Prepared:
    """Labelled examples, tokenized once, with what their metrics need to know.

    Attributes:
        input: The tokenized examples.
        right: The targets, as `kbert.training.finetuning.examples.targets` gives them.
        labels: The class names of a classifier; None for scores and choices.
        glue: The GLUE task whose official metrics apply, or None.
    """

    input: RunInput
    right: np.ndarray
    labels: Sequence[str] | None
    glue: str | None

    def measured(self, model: Any) -> dict[str, Any]:
        """Returns the metrics of a model's predictions, as `measure`.

        Args:
            model: The model that the examples were tokenized for, or one with its tokenizer.
        """
        return measure(self.right, self.input.predict(model), self.labels, self.glue)


AnyPrepared = Prepared | PreparedReading


def prepare(model: Any, examples: Examples, glue: str | None = None) -> AnyPrepared:
    """Tokenizes labelled examples for a model.

    Args:
        model: A model on raw texts.
        examples: Labelled examples of its task.
        glue: The GLUE task whose official metrics apply, or None.

    Raises:
        ValueError: The examples have no labels or a label that the model does not know, or they
            are of another task.
    """
    if isinstance(examples, QuestionExamples | TaggedSentences):
        return prepare_reading(model, examples)
    labels = getattr(model, "labels", None)
    return Prepared(tokenized(model, examples), targets(examples, labels), labels, glue)


def measure(
    right: np.ndarray,
    predictions: np.ndarray,
    labels: Sequence[str] | None = None,
    glue: str | None = None,
) -> dict[str, Any]:
    """Returns the metrics of predictions as a dict that JSON can hold.

    Args:
        right: Class or choice ids (n,), soft labels (n, C), of which the likeliest class counts,
            or scores (n,).
        predictions: What `predict` gives: probabilities (n, C), or scores (n,).
        labels: The class names; None for scores and choices.
        glue: The GLUE task whose official metrics apply, or None.

    Returns:
        The metrics by name, those that GLUE reports first; for classes also "per_class" and
        "confusion"; for choices "accuracy" and "cross_entropy".
    """
    if predictions.ndim == 1:
        return dict(regression_metrics(right, predictions))
    ids = right.argmax(-1) if right.ndim == 2 else right
    predicted = predictions.argmax(-1)
    if labels is None:
        numbers_of_choices = [str(i) for i in range(predictions.shape[1])]
        metrics = classification_metrics(ids, predicted, numbers_of_choices, predictions)
        return {name: metrics[name] for name in ("accuracy", "cross_entropy")}
    metrics = classification_metrics(ids, predicted, labels, predictions)
    official: dict[str, float] = {}
    if glue is not None:
        names = np.asarray(labels)
        official = glue_metrics(glue, names[ids], names[predicted])
    return {**official, **{name: value for name, value in metrics.items() if name not in official}}


def monitored_metric(task: str, wanted: str | None, labels: Any, glue: str | None) -> str:
    """Returns the metric that the epochs of a run are compared by.

    Args:
        task: The run's task.
        wanted: The metric that the configuration names, or None for the task's first.
        labels: The class names, or None.
        glue: The GLUE task whose official metrics apply, or None.

    Raises:
        ValueError: The task has no such metric.
    """
    known = ["accuracy", "cross_entropy"]
    if task == "classification":
        known += ["macro_f1", "matthews"]
        known += ["f1"] if labels is not None and len(labels) == 2 else []
    if task == "regression":
        known = ["pearson", "spearman", "mse"]
    if task in MONITORED:
        known = list(MONITORED[task])
    if wanted is None:
        return GLUE_METRICS[glue][0] if glue is not None else known[0]
    if wanted not in known:
        raise ValueError(
            f"`monitor` must be one of {', '.join(known)}. Received: monitor={wanted!r}"
        )
    return wanted
