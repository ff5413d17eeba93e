"""Labelled examples for training and evaluation, tokenized once."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbert.pipelines.base.batching import EVALUATION_TOKENS


@dataclass(frozen=True)
class Prepared:
    """Examples with one prediction each.

    Attributes:
        input: The tokenized examples.
        right: The targets.
        measure: Maps targets and predictions to the metrics.
    """

    input: Any
    right: np.ndarray
    measure: Callable[[np.ndarray, np.ndarray], dict[str, Any]]

    def measured(self, model: Any) -> dict[str, Any]:
        """Returns the metrics of a model's predictions.

        Args:
            model: The model that the examples were tokenized for, or one with its tokenizer.
        """
        return self.measure(self.right, self.input.predict(model))

    def trained(self, config: Any) -> "Prepared":
        """Returns the part of these examples to train on.

        Args:
            config: The run's configuration.
        """
        return self

    @property
    def validating(self) -> Any:
        """The examples to evaluate the epochs of a run on."""
        return self


@dataclass(frozen=True)
class PreparedReading:
    """Long texts in windows, evaluated by the answers that are combined from them.

    Attributes:
        input: The windows.
        examples: The examples.
        measure: Maps a model, the examples, and whether to tune the model's threshold on them, to
            the metrics.
    """

    input: Any
    examples: Any
    measure: Callable[[Any, Any, bool], dict[str, Any]]

    @property
    def right(self) -> np.ndarray:
        """The targets of the windows."""
        targets: np.ndarray = self.input.targets
        return targets

    def loss(self, model: Any) -> float:
        """Returns the mean loss of the windows.

        Args:
            model: The model that the examples were prepared for, compiled.
        """
        cut = {"batch_size": None, "batch_tokens": EVALUATION_TOKENS}
        batches = model.dataset(self.input.windows, self.right, **cut)
        return float(model.evaluate(batches, verbose=0, return_dict=True)["loss"])

    def measured(self, model: Any, tune: bool = False) -> dict[str, Any]:
        """Returns the metrics of a model's answers.

        Args:
            model: The model that the examples were prepared for.
            tune: Whether to set the model's threshold to the best one for these examples.
        """
        return self.measure(model, self.examples, tune)

    def trained(self, config: Any) -> "PreparedReading":
        """Returns the windows to train on: all, or those with an answer and `other_windows` others.

        Args:
            config: The run's configuration.
        """
        if config.other_windows is None:
            return self
        return replace(self, input=self.input.with_others(config.other_windows, config.seed))

    @property
    def validating(self) -> Any:
        """The examples to evaluate the epochs of a run on; they also tune the threshold."""
        return TuningReading(self)


@dataclass(frozen=True)
class TuningReading:
    """Validation examples: each evaluation of a model on them also tunes its threshold.

    Attributes:
        part: The examples.
    """

    part: PreparedReading

    def measured(self, model: Any) -> dict[str, Any]:
        """Returns the metrics with the best threshold, and the loss of the windows.

        Args:
            model: The model that the examples were prepared for, compiled.
        """
        metrics = self.part.measured(model, tune=True)
        # Several replicas evaluate together, in batches of one shape: the loss is unknown there.
        if model.replication.is_active:
            return metrics
        return {"loss": self.part.loss(model), **metrics}
