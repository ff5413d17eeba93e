"""Contexts with choices: their forms for `fit`, `evaluate` and `predict`, and their batches.

Shapes: B or n contexts, K choices of each, T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import Epochs, planned_batches, read_ahead
from kbert.data.batches.packed_examples import PackedExamples, plain, text_tensor
from kbert.data.batches.plans import batch_plan
from kbert.pipelines.sequence_batching import SequenceBatching
from kbert.pipelines.signatures import model_inputs
from kbert.pipelines.text_inputs import (
    as_column,
    checked_texts,
    is_texts,
    listed,
    read_columns,
)
from kbert.text.sequences.packing import PackedText

_ROWS = 16
_WRONG = "`x` must be a tuple of n contexts and of n lists of choices. Received: {}"


@dataclass(frozen=True)
class ChoiceInputs:
    """Contexts, n str or bytes, and their choices, n lists of K str or bytes."""

    contexts: Sequence[Any]
    choices: Sequence[Sequence[Any]]

    def __len__(self) -> int:
        return len(self.contexts)

    def __getitem__(self, rows: slice) -> "ChoiceInputs":
        return ChoiceInputs(self.contexts[rows], self.choices[rows])


def read_choice_inputs(x: Any) -> ChoiceInputs | None:
    """Reads contexts with choices in any of their forms; returns None for something else.

    These are a tuple of n str and of n lists (or an array (n, K)) of str, and a dict or table
    {"context", "choices"} of the same.

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
        raise ValueError(_WRONG.format(f"a {type(x).__name__} of texts"))
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
    if values.dtype.kind not in "iub" or ((values < 0) | (values >= count)).any():
        raise ValueError(
            f"`y` must hold indices in [0, {count}). Received: {np.unique(values).tolist()[:10]}"
        )
    return values.astype("int32")


@dataclass(frozen=True)
class ChoiceBatches:
    """Contexts (n,) with choices (n, K) in the batches of a run, which the model tokenizes.

    `packed` are the pairs of each context with each of its choices (n K,), for token counts.
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
        """Returns the training batches, see `kbert.tasks.inputs.PackedInput.dataset`."""
        x, place = (self.contexts, self.choices), (first_epoch, first_batch)
        rows, seed = config.batch_size, config.seed
        return model.batching.choices(x, targets, rows, True, seed, None, *place)

    def steps(self, config: Any) -> list[int]:
        """Returns the number of steps of each epoch."""
        return [-(-len(self.contexts) // config.batch_size)] * config.epochs

    def padding_share(self, config: Any) -> float:
        """Returns the share of padding, 0 to 1, in batches in the order of the file."""
        widths = self._by_choice(self.packed.lengths)
        starts = range(0, len(widths), config.batch_size)
        batches = [widths[start : start + config.batch_size] for start in starts]
        return 1.0 - int(widths.sum()) / sum(batch.size * int(batch.max()) for batch in batches)

    def predict(self, model: Any) -> np.ndarray:
        """Returns the probabilities of the choices (n, K)."""
        return model.predict((self.contexts, self.choices))

    def _by_choice(self, column: np.ndarray) -> np.ndarray:
        return column.reshape(len(self.contexts), -1)


class ChoiceBatching(SequenceBatching):
    """Batches of contexts with the same number of choices each, K texts an example."""

    training_rows = _ROWS
    dataset_forms = (("context", "choices"),)

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Tokenizes contexts string (B,) and choices (B, K) to ids (B, K, T), as graph code."""
        shape = tf.shape(text_b)
        contexts = tf.repeat(text_a, shape[1])
        packed = super().preprocess(contexts, tf.reshape(text_b, (-1,)))
        # (B K, T) -> (B, K, T); lengths and truncation likewise
        length = tf.shape(packed.token_ids)[1]
        wide = (*tf.unstack(shape), length)
        return PackedText(*(tf.reshape(x, wide if x.shape.rank == 2 else shape) for x in packed))

    def read_inputs(self, x: Any) -> Any:
        return read_choice_inputs(x)

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Returns the probabilities (n, K), in the order of `x`; `batch_size` counts contexts."""
        inputs = None if isinstance(x, tf.data.Dataset) else self.read_inputs(x := listed(x))
        if inputs is None:
            return super().predict(x, batch_size, **kwargs)
        if not len(inputs):
            return np.zeros((0, 0), "float32")
        dataset = self.choices(x, batch_size=batch_size or self.training_rows)
        return self.model.predict_numbers(dataset, **kwargs)

    def choices(
        self,
        x: Any,
        y: Any = None,
        batch_size: int = _ROWS,
        shuffle: bool = False,
        seed: int = 0,
        sample_weight: Any = None,
        first_epoch: int = 0,
        first_batch: int = 0,
    ) -> tf.data.Dataset:
        """Returns batches of token ids (B, K, T), with indices (B,) and weights (B,) where given.

        Each pass is shuffled differently. A resumed run begins at the pass `first_epoch`; a dataset
        that skips `first_batch` batches is the rest of one epoch.

        Raises:
            ValueError: the number of choices is not the same for all examples, or an index is out
                of range.
        """
        inputs = self.read_inputs(x)
        if inputs is None:
            raise ValueError(_WRONG.format(type(x).__name__))
        flat = text_tensor([text for row in inputs.choices for text in row])
        columns = [text_tensor(inputs.contexts), tf.reshape(flat, (len(inputs), -1))]
        if y is not None:
            columns.append(tf.constant(check_indices(y, inputs)))
        if sample_weight is not None:
            columns.append(tf.constant(np.asarray(sample_weight, "float32")))

        def encode(rows: tf.Tensor) -> Any:
            context, choice, *targets = (tf.gather(column, rows) for column in columns)
            numbers = model_inputs(self.preprocess(context, choice))
            return (numbers, *targets) if targets else numbers

        # All count as equally long: they keep their order, or have that of seed and epoch.
        plan = partial(batch_plan, np.ones(len(inputs)), batch_size, None, shuffle, seed)
        epochs = Epochs(first_epoch)
        dataset = planned_batches(plan, epochs, first_batch, is_constant=True)
        dataset = read_ahead(dataset.map(plain(encode), num_parallel_calls=tf.data.AUTOTUNE))
        dataset.epochs = epochs
        return dataset

    def batches(
        self,
        columns: tuple[Any, ...],
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
    ) -> tf.data.Dataset:
        """Returns batches of examples, their indices, and their weights if there are any."""
        if batch_tokens is not None:
            raise ValueError(
                "`batch_tokens` must be None for multiple choice, whose rows hold several texts. "
                f"Received: batch_tokens={batch_tokens}"
            )
        inputs, y, *weights = columns
        if not len(inputs):
            raise ValueError("`x` must hold at least one row. Received: none")
        x = (inputs.contexts, inputs.choices)
        return self.choices(x, y, batch_size or self.training_rows, shuffle, seed, *weights)

    def call_inputs(self, x: Any) -> Any:
        """Returns the input of a call of the model, with contexts and choices as ids (n, K, T)."""
        if not self.holds_texts(x):
            return x
        inputs = self.read_inputs(x)
        if inputs is None:
            raise ValueError(_WRONG.format(type(x).__name__))
        return next(iter(self.choices(x, batch_size=len(inputs))))
