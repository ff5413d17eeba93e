"""Batches of a run from contexts with choices."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.classification.multiple_choice import ChoiceExamples


@dataclass(frozen=True)
class ChoiceInput:
    """Contexts with choices; the model tokenizes them batch by batch.

    Attributes:
        contexts: The contexts (n,).
        choices: The choices (n, K).
        packed: Each context with each of its choices (n K,), for token counts.
    """

    contexts: list[str]
    choices: list[list[str]]
    packed: PackedExamples

    @property
    def lengths(self) -> np.ndarray:
        """Number of real tokens of each example, over all its choices, int (n,)."""
        return self._by_choice(self.packed.lengths).sum(axis=1)

    @property
    def truncated(self) -> np.ndarray:
        """Mask of examples with a truncated choice, bool (n,)."""
        return np.any(self._by_choice(self.packed.truncated), axis=1)

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
            model: A `MultipleChoice`.
            config: The run's configuration.
            targets: The index of the right choice of each example, or None.
            first_epoch: Index of the first pass.
            first_batch: Number of batches to skip in a resumed epoch.
        """
        place = {"first_epoch": first_epoch, "first_batch": first_batch}
        x = (self.contexts, self.choices)
        return model.batching.choices(x, targets, config.batch_size, True, config.seed, **place)

    def steps(self, config: Any) -> list[int]:
        """Returns the number of steps of each epoch.

        Args:
            config: The run's configuration.
        """
        return [-(-len(self.contexts) // config.batch_size)] * config.epochs

    def padding_share(self, config: Any) -> float:
        """Returns the share of padding, 0 to 1, in batches in the order of the file.

        Args:
            config: The run's configuration.
        """
        widths = self._by_choice(self.packed.lengths)
        batches = [
            widths[start : start + config.batch_size]
            for start in range(0, len(widths), config.batch_size)
        ]
        return 1.0 - int(widths.sum()) / sum(batch.size * int(batch.max()) for batch in batches)

    def predict(self, model: Any) -> np.ndarray:
        """Returns the probabilities of the choices (n, K).

        Args:
            model: A `MultipleChoice`.
        """
        return model.predict((self.contexts, self.choices))

    def _by_choice(self, column: np.ndarray) -> np.ndarray:
        return column.reshape(len(self.contexts), -1)


def choice_input(model: Any, examples: Any) -> ChoiceInput:
    """Tokenizes contexts with choices for a model.

    Args:
        model: A `MultipleChoice`.
        examples: Examples of its task, labelled or not.

    Raises:
        ValueError: They are of another task.
    """
    if not isinstance(examples, ChoiceExamples):
        kind = "single texts" if examples.text_b is None else "pairs of texts"
        raise ValueError(
            f"{examples.source}: the examples must be multiple choice, as the model was trained "
            f"on. Received: {kind}"
        )
    contexts = [c for c, row in zip(examples.contexts, examples.choices) for _ in row]
    flat = [choice for row in examples.choices for choice in row]
    return ChoiceInput(examples.contexts, examples.choices, model.pack(contexts, flat))
