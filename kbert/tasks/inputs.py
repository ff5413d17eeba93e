"""Examples of a run, tokenized once: their batches, and the metrics of a model on them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import batch_plan, padding_share, whole_batches
from kbert.data.batches.windowed_examples import WindowedExamples, choose_windows
from kbert.options.configuration import TPU
from kbert.pipelines.batching import EVALUATION_TOKENS


def batch_sizes(config: Any) -> dict[str, int | None]:
    """Returns the arguments `batch_size` and `batch_tokens` of `batch_plan` for a run."""
    if config.batch_tokens is not None:
        return {"batch_size": None, "batch_tokens": config.batch_tokens}
    return {"batch_size": config.batch_size, "batch_tokens": None}


@dataclass(frozen=True)
class PackedInput:
    """Texts or pairs in length-bucketed batches; the model's `dataset` takes `examples`."""

    examples: Any

    @property
    def packed(self) -> PackedExamples:
        """The token ids."""
        packed: PackedExamples = self.examples
        return packed

    @property
    def lengths(self) -> np.ndarray:
        """Number of real tokens of each example, int (n,)."""
        return self.packed.lengths

    @property
    def truncated(self) -> np.ndarray:
        """Mask of truncated examples, bool (n,)."""
        return self.packed.truncated

    def steps(self, config: Any) -> list[int]:
        """Returns the number of steps of each epoch."""
        return [len(self._plan(config, epoch)) for epoch in range(config.epochs)]

    def padding_share(self, config: Any) -> float:
        """Returns the share of padding in the batches of the first epoch, 0 to 1."""
        return padding_share(self.lengths, self._plan(config, 0))

    def _plan(self, config: Any, epoch: int) -> list[np.ndarray]:
        sizes = batch_sizes(config)
        found = batch_plan(self.lengths, **sizes, shuffle=True, seed=config.seed, epoch=epoch)
        return whole_batches(found, config.batch_size) if config.strategy == TPU else found

    def dataset(
        self,
        model: Any,
        config: Any,
        targets: Any = None,
        first_epoch: int = 0,
        first_batch: int = 0,
    ) -> Any:
        """Returns the training batches, which are shuffled again in each pass.

        A resumed run begins at the pass `first_epoch`, and skips `first_batch` batches of it.
        """
        cut: dict[str, Any] = batch_sizes(config)
        if config.strategy == TPU:  # it compiles each shape
            cut |= {"fixed_length": model.max_sequence_length, "drop_remainder": True}
        cut |= {"first_epoch": first_epoch, "first_batch": first_batch}
        return model.dataset(self.examples, targets, **cut, shuffle=True, seed=config.seed)

    def predict(self, model: Any) -> np.ndarray:
        """Returns the prediction of a model with the same tokenizer for each example, in order."""
        found: np.ndarray = model.batching.predict_packed(self.packed)
        return found


@dataclass(frozen=True)
class WindowInput(PackedInput):
    """Long texts, cut into windows, and the targets of these."""

    examples: WindowedExamples
    targets: np.ndarray

    @property
    def packed(self) -> PackedExamples:
        """The windows' token ids; a window counts as truncated if its question was."""
        return self.examples.packed

    def with_others(self, others: int, seed: int) -> "WindowInput":
        """Returns the windows with an answer, and a number of others for each question, drawn."""
        has_answer = windows_with_answer(self.examples, self.targets)
        kept = choose_windows(self.examples.row, has_answer, others, seed)
        # Targets of tokens are not selected: windows point to their tokens.
        is_by_window = self.targets.ndim == 3
        targets = self.targets[kept] if is_by_window else self.targets
        return WindowInput(self.examples.select(kept), targets)


def windows_with_answer(windows: WindowedExamples, targets: np.ndarray) -> np.ndarray:
    """Returns the mask of windows with an answer to learn, bool (W,).

    `targets` are (W, K, 2), positions of K answers or [CLS]; or (tokens, 3), the shares of B, I and
    O, where a window has an answer if tokens of one count in it.
    """
    if targets.ndim == 3:
        return targets[:, 0, 0] > 0
    if not len(windows):
        return np.zeros(0, bool)
    return np.add.reduceat(targets[:, :2].sum(axis=1), windows.packed.starts) > 0


@dataclass(frozen=True)
class Prepared:
    """Labelled examples, tokenized, with one prediction each.

    `right` are the targets, and `measure` maps targets and predictions to the metrics.
    """

    input: Any
    right: np.ndarray
    measure: Callable[[np.ndarray, np.ndarray], dict[str, Any]]

    def measured(self, model: Any) -> dict[str, Any]:
        """Returns the metrics of the predictions of a model with the same tokenizer."""
        return self.measure(self.right, self.input.predict(model))

    def trained(self, config: Any) -> "Prepared":
        """Returns the part of these examples to train on."""
        return self

    def validating(self, config: Any) -> Any:
        """Returns the examples to evaluate the epochs of a run on."""
        return self


@dataclass(frozen=True)
class PreparedReading:
    """Long texts in windows, evaluated by the answers that are combined from them.

    `measure` maps a model, the examples, and whether to tune the model's threshold on them, to the
    metrics. Where epochs are evaluated (`is_validation`) it is tuned, and the loss is a metric too.
    """

    input: WindowInput
    examples: Any
    measure: Callable[[Any, Any, bool], dict[str, Any]]
    is_validation: bool = False

    @property
    def right(self) -> np.ndarray:
        """The targets of the windows."""
        return self.input.targets

    def measured(self, model: Any) -> dict[str, Any]:
        """Returns the metrics of a model's answers."""
        metrics = self.measure(model, self.examples, self.is_validation)
        # Several replicas evaluate together, in batches of one shape: the loss is unknown there.
        if not self.is_validation or model.replication.is_active:
            return metrics
        cut = {"batch_size": None, "batch_tokens": EVALUATION_TOKENS}
        batches = model.dataset(self.input.examples, self.right, **cut)
        loss = model.evaluate(batches, verbose=0, return_dict=True)["loss"]
        return {"loss": float(loss), **metrics}

    def trained(self, config: Any) -> "PreparedReading":
        """Returns the windows to train on: all, or with an answer and `other_windows` others."""
        if config.other_windows is None:
            return self
        return replace(self, input=self.input.with_others(config.other_windows, config.seed))

    def validating(self, config: Any) -> "PreparedReading":
        """Returns the examples to evaluate the epochs of a run on."""
        return replace(self, is_validation=True)
