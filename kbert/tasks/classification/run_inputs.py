"""Batches of a run from texts and pairs of texts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.classification.text_pairs import TextExamples
from kbert.tasks.base.inputs import PackedInput, batch_sizes, fixed_shapes


@dataclass(frozen=True)
class TextInput(PackedInput):
    """Texts or pairs, tokenized once.

    Attributes:
        packed: The token ids.
    """

    packed: PackedExamples

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
            model: A `Classifier` or `Regressor`.
            config: The run's configuration.
            targets: One target per example, or None.
            first_epoch: Index of the first pass.
            first_batch: Number of batches to skip in a resumed epoch.
        """
        place = {"first_epoch": first_epoch, "first_batch": first_batch}
        cut = {**batch_sizes(config), **fixed_shapes(model, config), **place}
        return model.dataset(self.packed, targets, **cut, shuffle=True, seed=config.seed)

    def predict(self, model: Any) -> np.ndarray:
        """Returns the model's prediction for each example, in their order.

        Args:
            model: A `Classifier` or `Regressor` with the tokenizer of `packed`.
        """
        return model.batching.predict_packed(self.packed)


def text_input(model: Any, examples: Any) -> TextInput:
    """Tokenizes texts for a model.

    Args:
        model: A `Classifier` or `Regressor`.
        examples: Examples of its task, labelled or not.

    Raises:
        ValueError: The model reads pairs and the examples are single texts, or the reverse, or
            they are of another task.
    """
    if not isinstance(examples, TextExamples):
        raise ValueError(
            f"{examples.source}: the examples must be texts for a {type(model).__name__}. "
            "Received: multiple choice"
        )
    if model.pair != (examples.text_b is not None):
        raise ValueError(
            f"{examples.source}: the examples must be "
            f"{'pairs of texts' if model.pair else 'single texts'}, as the model was trained on. "
            f"Received: {'single texts' if examples.text_b is None else 'pairs of texts'}"
        )
    texts = [examples.text_a] + ([] if examples.text_b is None else [examples.text_b])
    return TextInput(model.pack(*texts))
