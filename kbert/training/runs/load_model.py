"""Models of runs: one loaded by itself, and the mean of several's predictions."""

import gc
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.tasks.finetuned_task import FinetunedTask
from kbert.tasks.load import load
from kbert.tasks.registry import task_of
from kbert.training.runs.run_directory import model_of


def load_model(directory: str | os.PathLike[str]) -> Any:
    """Loads the model of a finished run, or of a folder that `save_pretrained` wrote."""
    return load(model_of(directory))


@dataclass(frozen=True)
class Averaged:
    """The mean of the predictions of so many `models` of a task.

    `predictions` are probabilities (n, C) or scores (n,), float64; `labels` are the class names of
    classifiers, or None; `thresholds`, the mean of the models', are those from which on labels
    count, or None.
    """

    predictions: np.ndarray
    labels: list[str] | None
    models: int
    task: FinetunedTask
    thresholds: np.ndarray | None = None

    def measured(self, examples: Any, glue: str | None) -> dict[str, Any]:
        """Returns the metrics for labelled examples; `glue` is as in `FinetunedTask`."""
        right = self.task.targets(examples, self.labels)
        return self.task.measure_predictions(
            right, self.predictions, self.labels, glue, self.thresholds
        )


def predict_average(directories: Iterable[str | os.PathLike[str]], examples: Any) -> Averaged:
    """Predicts with several models of one kind, and averages their probabilities or scores.

    Only one model is in memory at a time. Models that do not fit each other are a ValueError.
    """
    total: Any = 0.0
    bounds: list[Any] = []
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
        task: Any = task_of(model)
        if not isinstance(task, FinetunedTask) or not task.averages:
            raise ValueError(
                "`directories` must hold models whose predictions have a mean: of classes, scores "
                f"or choices. Received: a {type(model).__name__}"
            )
        total = total + task.inputs(model, examples).predict(model).astype("float64")
        bounds.append(task.thresholds(model))
        count += 1
        del model
        gc.collect()  # the graphs of a Keras model refer to it
    if first is None:
        raise ValueError("`directories` must hold at least one run. Received: none")
    thresholds = None if bounds[0] is None else np.mean(bounds, axis=0)
    return Averaged(total / count, first[0][1], count, task, thresholds)


def _words(kind: tuple[str, list[str] | None]) -> str:
    return kind[0] if kind[1] is None else f"{kind[0]} of {', '.join(kind[1])}"
