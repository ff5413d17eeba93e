"""Ensemble of several models: the mean of their predictions."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.tasks.registry import task_of
from kbert.tasks.task import FinetunedTask
from kbert.training.runs.load_model import load_model


@dataclass(frozen=True)
class Averaged:
    """The mean of several models' predictions.

    Attributes:
        predictions: Probabilities (n, C), or scores (n,), float64.
        labels: The class names of classifiers, or None.
        models: Number of models.
        task: Their task.
    """

    predictions: np.ndarray
    labels: list[str] | None
    models: int
    task: FinetunedTask


def predict_average(directories: Iterable[str | os.PathLike[str]], examples: Any) -> Averaged:
    """Predicts with several models, and averages their probabilities or scores.

    Only one model is in memory at a time.

    Args:
        directories: Runs or models of one task with the same labels in the same order.
        examples: Examples, labelled or not.

    Raises:
        ValueError: There are no directories, or the models do not fit each other or the examples.
        FileNotFoundError: A run is missing or not finished.
    """
    total: Any = 0.0
    first: Any = None
    count = 0
    for directory in directories:
        model = load_model(directory)
        kind = (type(model).__name__, getattr(model, "labels", None))
        if first is None:
            first = (kind, directory)
        elif kind != first[0]:
            raise ValueError(
                f"`directories` must hold models of one kind with the same labels. Received: "
                f"{_words(first[0])} in {first[1]}, {_words(kind)} in {directory}"
            )
        task = _task(model)
        total = total + task.inputs(model, examples).predict(model).astype("float64")
        count += 1
    if first is None:
        raise ValueError("`directories` must hold at least one run. Received: none")
    return Averaged(total / count, first[0][1], count, task)


def _task(model: Any) -> FinetunedTask:
    task = task_of(model)
    if not isinstance(task, FinetunedTask) or not task.averages:
        raise ValueError(
            "`directories` must hold models whose predictions have a mean: of classes, scores or "
            f"choices. Received: a {type(model).__name__}"
        )
    return task


def _words(kind: tuple[str, list[str] | None]) -> str:
    return kind[0] if kind[1] is None else f"{kind[0]} of {', '.join(kind[1])}"
