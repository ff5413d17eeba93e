"""The task regression: numbers for texts and pairs of texts."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.classification.labels import required_labels
from kbert.tasks.classification.task import TextTask, sequence_outputs
from kbert.tasks.options import FEATURE_OPTIONS


@dataclass(frozen=True)
class Score:
    """The score of a text, by a regressor."""

    score: float
    truncated: bool | None = None


class RegressionTask(TextTask):
    """The task of scoring texts and pairs of texts."""

    name = "regression"
    model_name = "Regressor"
    module = "kbert.tasks.regression.model"
    does = "gives a text, or a pair of texts, a score"
    page = "regression"
    outputs = ("score",)
    answer_keys = ("score",)
    target_dtype = "float32"
    compared = ("pearson", "spearman", "mse")
    is_regression = True
    options = FEATURE_OPTIONS
    falling = ("mse",)

    def has_outputs(self, names: Collection[str]) -> bool:
        return "score" in names and set(names) <= {"score", "truncated"}

    def is_answer(self, answer: Mapping[str, Any]) -> bool:
        return self.has_outputs(answer)

    def typed_answer(self, answer: Mapping[str, Any]) -> Score:
        return Score(answer["score"], answer.get("truncated"))

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return sequence_outputs(architecture, checkpoint) == 1

    def targets(self, examples: Any, labels: Sequence[str] | None) -> np.ndarray:
        return np.asarray(required_labels(examples), "float32")

    def measure_predictions(
        self, right: np.ndarray, predictions: np.ndarray, *_: Any
    ) -> dict[str, Any]:
        from kbert.metrics.glue import regression_metrics

        return dict(regression_metrics(right, predictions))


TASK = RegressionTask()
