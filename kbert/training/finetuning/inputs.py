"""Examples tokenized for a model: what it trains on, and what it predicts for."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.plans import batch_plan, padding_share, whole_batches
from kbert.data.classification.multiple_choice import ChoiceExamples
from kbert.data.classification.text_pairs import TextExamples
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.finetuning.examples import LabelledExamples


def batch_sizes(config: RunConfig) -> dict[str, int | None]:
    """Returns the arguments `batch_size` and `batch_tokens` of `batch_plan` for a run.

    Args:
        config: The run's configuration.
    """
    if config.batch_tokens is not None:
        return {"batch_size": None, "batch_tokens": config.batch_tokens}
    return {"batch_size": config.batch_size, "batch_tokens": None}


def fixed_shapes(model: Any, config: RunConfig) -> dict[str, Any]:
    """Returns the arguments of `batched_dataset` that give all batches of a run one shape.

    A TPU compiles each shape anew; elsewhere there are none, and batches are of like length.

    Args:
        model: The run's model.
        config: The run's configuration.
    """
    if not _is_fixed(config):
        return {}
    return {"fixed_length": model.max_sequence_length, "drop_remainder": True}


def _is_fixed(config: RunConfig) -> bool:
    return config.strategy == "tpu"


class PackedInput:
    """Examples in batches of like length; a subclass has `packed`, their token ids."""

    packed: PackedExamples

    @property
    def lengths(self) -> np.ndarray:
        """Real tokens of each example, int (n,)."""
        return self.packed.lengths

    @property
    def truncated(self) -> np.ndarray:
        """Whether tokens of an example were cut off, bool (n,)."""
        return self.packed.truncated

    def steps(self, config: RunConfig) -> list[int]:
        """Returns the number of steps of each epoch.

        Args:
            config: The run's configuration.
        """
        return [len(self._plan(config, epoch)) for epoch in range(config.epochs)]

    def padding_share(self, config: RunConfig) -> float:
        """Returns the share of padding in the batches of the first epoch, 0 to 1.

        Args:
            config: The run's configuration.
        """
        return padding_share(self.lengths, self._plan(config, 0))

    def _plan(self, config: RunConfig, epoch: int) -> list[np.ndarray]:
        sizes = batch_sizes(config)
        found = batch_plan(self.lengths, **sizes, shuffle=True, seed=config.seed, epoch=epoch)
        return whole_batches(found, config.batch_size) if _is_fixed(config) else found


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
        config: RunConfig,
        targets: Any = None,
        first_epoch: int = 0,
        first_batch: int = 0,
    ) -> Any:
        """Returns the batches to train on; each pass shuffles anew.

        Args:
            model: A `Classifier` or `Regressor`.
            config: The run's configuration.
            targets: A target an example, or None.
            first_epoch: Number of the first pass.
            first_batch: Batches that are left out, of an epoch that goes on.
        """
        place = {"first_epoch": first_epoch, "first_batch": first_batch}
        cut = {**batch_sizes(config), **fixed_shapes(model, config), **place}
        return model.dataset(self.packed, targets, **cut, shuffle=True, seed=config.seed)

    def predict(self, model: Any) -> np.ndarray:
        """Returns what the model predicts for each example, in their order.

        Args:
            model: A `Classifier` or `Regressor` with the tokenizer of `packed`.
        """
        return model.predict_packed(self.packed)


@dataclass(frozen=True)
class ChoiceInput:
    """Contexts with choices; the model tokenizes them batch by batch.

    Attributes:
        contexts: The contexts (n,).
        choices: The choices (n, K).
        packed: Each context with each of its choices (n K,), for the counts.
    """

    contexts: list[str]
    choices: list[list[str]]
    packed: PackedExamples

    @property
    def lengths(self) -> np.ndarray:
        """Real tokens of each example, all its choices together, int (n,)."""
        return self._by_choice(self.packed.lengths).sum(axis=1)

    @property
    def truncated(self) -> np.ndarray:
        """Whether tokens of one of the choices were cut off, bool (n,)."""
        return np.any(self._by_choice(self.packed.truncated), axis=1)

    def dataset(
        self,
        model: Any,
        config: RunConfig,
        targets: Any = None,
        first_epoch: int = 0,
        first_batch: int = 0,
    ) -> Any:
        """Returns the batches to train on; each pass shuffles anew.

        Args:
            model: A `MultipleChoice`.
            config: The run's configuration.
            targets: The index of the right choice of each example, or None.
            first_epoch: Number of the first pass.
            first_batch: Batches that are left out, of an epoch that goes on.
        """
        place = {"first_epoch": first_epoch, "first_batch": first_batch}
        x = (self.contexts, self.choices)
        return model.choice_dataset(x, targets, config.batch_size, True, config.seed, **place)

    def steps(self, config: RunConfig) -> list[int]:
        """Returns the number of steps of each epoch.

        Args:
            config: The run's configuration.
        """
        return [-(-len(self.contexts) // config.batch_size)] * config.epochs

    def padding_share(self, config: RunConfig) -> float:
        """Returns the share of padding, 0 to 1, in batches of the order of the file.

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


RunInput = TextInput | ChoiceInput


def tokenized(model: Any, examples: LabelledExamples) -> RunInput:
    """Tokenizes examples for a model.

    Args:
        model: A `Classifier`, `Regressor` or `MultipleChoice`.
        examples: Examples of its task.

    Raises:
        ValueError: The model reads pairs and the examples are single texts, or the reverse, or
            they are of another task.
    """
    if isinstance(examples, ChoiceExamples):
        if not hasattr(model, "choice_dataset"):
            raise ValueError(
                f"{examples.source}: the examples must be texts for a {type(model).__name__}. "
                "Received: multiple choice"
            )
        contexts = [c for c, row in zip(examples.contexts, examples.choices) for _ in row]
        flat = [choice for row in examples.choices for choice in row]
        return ChoiceInput(examples.contexts, examples.choices, model.pack(contexts, flat))
    _check_texts(model, examples)
    texts = [examples.text_a] + ([] if examples.text_b is None else [examples.text_b])
    return TextInput(model.pack(*texts))


def _check_texts(model: Any, examples: TextExamples) -> None:
    wanted = "multiple choice" if hasattr(model, "choice_dataset") else None
    if wanted is None and model.pair != (examples.text_b is not None):
        wanted = "pairs of texts" if model.pair else "single texts"
    if wanted is not None:
        raise ValueError(
            f"{examples.source}: the examples must be {wanted}, as the model was trained on. "
            f"Received: {'single texts' if examples.text_b is None else 'pairs of texts'}"
        )
