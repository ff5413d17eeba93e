"""Labelled examples, tokenized once, that a model is trained and measured on."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbert.pipelines.base.raw_text_batches import EVALUATION_TOKENS


@dataclass(frozen=True)
class Prepared:
    """Examples of which each has one prediction.

    Attributes:
        input: The tokenized examples.
        right: The targets.
        measure: From the targets and the predictions to the metrics.
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
        """Returns what a run trains on of these examples.

        Args:
            config: The run's configuration.
        """
        return self

    @property
    def validating(self) -> Any:
        """What the epochs of a run are measured on."""
        return self


@dataclass(frozen=True)
class PreparedReading:
    """Long texts in windows, measured by the answers that are put together from them.

    Attributes:
        input: The windows.
        examples: The examples.
        measure: From a model, the examples and whether to tune the model's threshold on them, to
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
            tune: Whether to give the model the threshold that is best for these examples.
        """
        return self.measure(model, self.examples, tune)

    def trained(self, config: Any) -> "PreparedReading":
        """Returns what a run trains on of these examples: as many windows as it says.

        Args:
            config: The run's configuration.
        """
        if config.other_windows is None:
            return self
        return replace(self, input=self.input.with_others(config.other_windows, config.seed))

    @property
    def validating(self) -> Any:
        """What the epochs of a run are measured on; they choose the model's threshold."""
        return TuningReading(self)


@dataclass(frozen=True)
class TuningReading:
    """Validation examples: whenever a model is measured on them, they choose its threshold.

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
        # Several replicas evaluate together, in batches of one shape: there the loss stays unknown.
        return metrics if model.is_replicated else {"loss": self.part.loss(model), **metrics}
