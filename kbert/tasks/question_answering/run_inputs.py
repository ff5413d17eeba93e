"""Batches of a run from windows of long texts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.windowed_examples import WindowedExamples, choose_windows
from kbert.tasks.base.inputs import PackedInput, batch_sizes, fixed_shapes
from kbert.tasks.question_answering.span_targets import windows_with_answer


@dataclass(frozen=True)
class WindowInput(PackedInput):
    """Texts, cut into windows and tokenized once.

    Attributes:
        windows: The windows.
        targets: Their targets.
    """

    windows: WindowedExamples
    targets: np.ndarray

    # The base only reads it, so it need not be a field; mypy has no read-only attributes.
    @property
    def packed(self) -> PackedExamples:  # type: ignore[override]
        """The windows' token ids; a window counts as truncated if its question was."""
        return self.windows.packed

    def with_others(self, others: int, seed: int) -> "WindowInput":
        """Returns the windows with an answer, and a number of others for each question.

        Args:
            others: Number of windows without the answer to keep for each question.
            seed: The seed of drawing them.
        """
        has_answer = windows_with_answer(self.windows, self.targets)
        kept = choose_windows(self.windows.row, has_answer, others, seed)
        # Targets of tokens are not selected: windows point to their tokens.
        is_by_window = self.targets.ndim == 3
        targets = self.targets[kept] if is_by_window else self.targets
        return WindowInput(self.windows.select(kept), targets)

    def dataset(
        self,
        model: Any,
        config: Any,
        targets: Any = None,
        first_epoch: int = 0,
        first_batch: int = 0,
    ) -> Any:
        """Returns the training batches, which are shuffled again in each pass.

        Args:
            model: The model that the windows were cut for.
            config: The run's configuration.
            targets: The attribute `targets`, or None for batches without targets.
            first_epoch: Index of the first pass.
            first_batch: Number of batches to skip in a resumed epoch.
        """
        place = {"first_epoch": first_epoch, "first_batch": first_batch}
        cut = {**batch_sizes(config), **fixed_shapes(model, config), **place}
        return model.dataset(self.windows, targets, **cut, shuffle=True, seed=config.seed)
