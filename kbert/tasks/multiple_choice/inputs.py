"""Contexts with choices: their forms for `fit`, `evaluate` and `predict`, and batches of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples
from kbert.pipelines.base.text_inputs import as_column, checked_texts, is_texts, read_columns


@dataclass(frozen=True)
class ChoiceInputs:
    """Contexts, each with its choices.

    Attributes:
        contexts: n str or bytes.
        choices: n lists of K str or bytes.
    """

    contexts: Sequence[Any]
    choices: Sequence[Sequence[Any]]

    def __len__(self) -> int:
        """Returns the number of examples."""
        return len(self.contexts)

    def __getitem__(self, rows: slice) -> "ChoiceInputs":
        """Returns some of the examples."""
        return ChoiceInputs(self.contexts[rows], self.choices[rows])


def read_choice_inputs(x: Any) -> ChoiceInputs | None:
    """Reads contexts with choices in any of their forms.

    Args:
        x: a tuple of n str and of n lists (or an array (n, K)) of str; a dict or table {"context",
            "choices"} of the same; or anything else.

    Returns:
        The examples, or None if `x` is something else (token ids, a dataset).

    Raises:
        ValueError: texts without choices; contexts and lists differ in number, or the lists in
            length; or a table has other columns.
        TypeError: an entry is not a text.
    """
    x = read_columns(x, ("context", "choices"))
    if isinstance(x, dict) and set(x) == {"context", "choices"}:
        x = (x["context"], x["choices"])
    if isinstance(x, tuple):
        x = tuple(map(as_column, x))
    if (is_texts(x) and len(x)) or (isinstance(x, tuple) and is_texts(x[-1]) and len(x[-1])):
        raise ValueError(
            "`x` must be a tuple of n contexts and of n lists of choices. "
            f"Received: a {type(x).__name__} of texts"
        )
    if not isinstance(x, tuple) or len(x) != 2 or not is_texts(x[0]):
        return None
    if not isinstance(x[1], list | tuple | np.ndarray) or not all(is_texts(row) for row in x[1]):
        return None
    contexts = checked_texts("context", x[0])
    choices = [checked_texts(f"choices[{row}]", texts) for row, texts in enumerate(x[1])]
    if len(contexts) != len(choices):
        raise ValueError(
            "`x` must hold one list of choices a context. Received: "
            f"{len(contexts)} contexts and {len(choices)} lists"
        )
    counts = sorted({len(row) for row in choices})
    if len(counts) > 1 or counts == [0]:
        raise ValueError(f"all rows must have the same number of choices. Received: {counts}")
    return ChoiceInputs(contexts, choices)


def check_indices(y: Any, inputs: ChoiceInputs) -> np.ndarray:
    """Returns the indices of the right choices as int32 (n,).

    Raises:
        ValueError: they are not one integer in [0, K) per example.
    """
    values = np.asarray(as_column(y))
    if values.shape != (len(inputs),):
        raise ValueError(
            f"`y` must have {len(inputs)} indices. Received: an array of shape {values.shape}"
        )
    count = len(inputs.choices[0]) if len(inputs) else 0
    if values.dtype.kind not in "iub" or (values.size and not _within(values, count)):
        raise ValueError(
            f"`y` must hold indices in [0, {count}). Received: {np.unique(values).tolist()[:10]}"
        )
    return values.astype("int32")


def _within(values: np.ndarray, count: int) -> bool:
    return bool(values.min() >= 0 and values.max() < count)


@dataclass(frozen=True)
class ChoiceBatches:
    """Contexts with choices, in the batches of a run; the model tokenizes them batch by batch.

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
        """Returns the training batches, see `kbert.tasks.base.inputs.PackedInput.dataset`."""
        place = {"first_epoch": first_epoch, "first_batch": first_batch}
        x = (self.contexts, self.choices)
        return model.batching.choices(x, targets, config.batch_size, True, config.seed, **place)

    def steps(self, config: Any) -> list[int]:
        """Returns the number of steps of each epoch."""
        return [-(-len(self.contexts) // config.batch_size)] * config.epochs

    def padding_share(self, config: Any) -> float:
        """Returns the share of padding, 0 to 1, in batches in the order of the file."""
        widths = self._by_choice(self.packed.lengths)
        batches = [
            widths[start : start + config.batch_size]
            for start in range(0, len(widths), config.batch_size)
        ]
        return 1.0 - int(widths.sum()) / sum(batch.size * int(batch.max()) for batch in batches)

    def predict(self, model: Any) -> np.ndarray:
        """Returns the probabilities of the choices (n, K)."""
        return model.predict((self.contexts, self.choices))

    def _by_choice(self, column: np.ndarray) -> np.ndarray:
        return column.reshape(len(self.contexts), -1)
