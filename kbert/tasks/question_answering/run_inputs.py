"""Windows of long texts: what a reading model trains on."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.windowed_examples import WindowedExamples
from kbert.data.questions.window_choice import choose_windows
from kbert.tasks.base.inputs import PackedInput, batch_sizes, fixed_shapes
from kbert.tasks.question_answering.span_targets import windows_with_answer


@dataclass(frozen=True)
class WindowInput(PackedInput):
    """Texts, cut into windows and tokenized once.

    Attributes:
        windows: The windows.
        targets: What the model learns for them.
    """

    windows: WindowedExamples
    targets: np.ndarray

    # The base only reads it, so it need not be a field; mypy knows no attribute that is only read.
    @property
    def packed(self) -> PackedExamples:  # type: ignore[override]
        """The windows' token ids; one counts as cut where its question was."""
        return self.windows.packed

    def with_others(self, others: int, seed: int) -> "WindowInput":
        """The windows with an answer, and of each question so many others.

        Args:
            others: How many windows without the answer a question keeps.
            seed: Of their draw.
        """
        has_answer = windows_with_answer(self.windows, self.targets)
        kept = choose_windows(self.windows.row, has_answer, others, seed)
        # Targets of tokens stay where the tokens are.
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
        """Returns the batches to train on; each pass shuffles anew.

        Args:
            model: The model that the windows were cut for.
            config: The run's configuration.
            targets: `targets` of this, or None for batches without.
            first_epoch: Number of the first pass.
            first_batch: Batches that are left out, of an epoch that goes on.
        """
        place = {"first_epoch": first_epoch, "first_batch": first_batch}
        cut = {**batch_sizes(config), **fixed_shapes(model, config), **place}
        return model.dataset(self.windows, targets, **cut, shuffle=True, seed=config.seed)
