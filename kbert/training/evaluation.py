"""Measuring a model on examples, with the metrics of its task."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.multiple_choice import ChoiceExamples
from kbert.metrics.glue import classification_metrics, glue_metrics, regression_metrics
from kbert.metrics.glue_names import GLUE_METRICS
from kbert.training.run_data import Examples, targets
from kbert.training.run_input import RunInput, tokenized

# These are the better the smaller they are.
FALLING = ("cross_entropy", "mse")


@dataclass(frozen=True)
class Measured:
    """Examples that are ready to be measured on, tokenized once.

    Attributes:
        input: The tokenized examples.
        right: The targets.
        labels: The class names; None for scores and choices.
        choices: Number of choices of an example; None but for multiple choice.
        glue: The GLUE task whose official metrics apply, or None.
    """

    input: RunInput
    right: np.ndarray
    labels: Sequence[str] | None
    choices: int | None
    glue: str | None


def prepare(model: Any, examples: Examples, glue: str | None = None) -> Measured:
    """Tokenizes labelled examples for a model.

    Args:
        model: A `Classifier`, `Regressor` or `MultipleChoice`.
        examples: Labelled examples of its task.
        glue: The GLUE task whose official metrics apply, or None.

    Raises:
        ValueError: The examples have no labels or a label that the model does not know, or they
            are of another task.
    """
    labels = getattr(model, "labels", None)
    choices = examples.num_choices if isinstance(examples, ChoiceExamples) else None
    right = targets(examples, labels)
    return Measured(tokenized(model, examples), right, labels, choices, glue)


def measure(measured: Measured, predictions: np.ndarray) -> dict[str, Any]:
    """Returns the metrics of predictions as a dict that JSON can hold.

    Args:
        measured: The examples.
        predictions: What the model's `predict` gives: probabilities (n, C), or scores (n,).

    Returns:
        The metrics by name, those that GLUE reports first; for classes also "per_class" and
        "confusion". Where the right labels are soft, the likeliest class counts.
    """
    if measured.labels is None and measured.choices is None:
        return dict(regression_metrics(measured.right, predictions))
    names = measured.labels or [str(i) for i in range(measured.choices or 0)]
    right = measured.right.argmax(-1) if measured.right.ndim == 2 else measured.right
    predicted = predictions.argmax(-1)
    metrics = classification_metrics(right, predicted, names, predictions)
    official: dict[str, float] = {}
    if measured.glue is not None:
        named = np.asarray(names)
        official = glue_metrics(measured.glue, named[right], named[predicted])
    if measured.labels is None:
        metrics = {name: metrics[name] for name in ("accuracy", "cross_entropy")}
    return {**official, **{name: value for name, value in metrics.items() if name not in official}}


def evaluate(model: Any, examples: Examples, glue: str | None = None) -> dict[str, Any]:
    """Measures a model on labelled examples.

    Args:
        model: A `Classifier`, `Regressor` or `MultipleChoice`.
        examples: Labelled examples of its task.
        glue: The GLUE task whose official metrics apply, or None.

    Returns:
        As `measure`.
    """
    measured = prepare(model, examples, glue)
    return measure(measured, measured.input.predict(model))


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
    if wanted is None:
        return GLUE_METRICS[glue][0] if glue is not None else known[0]
    if wanted not in known:
        raise ValueError(
            f"`monitor` must be one of {', '.join(known)}. Received: monitor={wanted!r}"
        )
    return wanted


def is_better(metric: str, value: float, best: float | None) -> bool:
    """Tells whether a value of a metric is better than the best so far.

    Args:
        metric: The metric's name.
        value: The new value.
        best: The best so far, or None.
    """
    if best is None:
        return True
    return value < best if metric in FALLING else value > best


def numbers(metrics: dict[str, Any]) -> dict[str, float]:
    """Returns the metrics that are single numbers.

    Args:
        metrics: From `measure`.
    """
    return {name: value for name, value in metrics.items() if isinstance(value, (int, float))}
