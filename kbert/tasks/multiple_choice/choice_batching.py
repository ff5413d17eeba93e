"""Batches of contexts with K choices each."""

from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import Epochs, planned_batches, read_ahead
from kbert.data.batches.packed_examples import text_tensor
from kbert.data.batches.plans import batch_plan
from kbert.pipelines.base.sequence_batching import SequenceBatching
from kbert.pipelines.base.signatures import model_inputs
from kbert.pipelines.base.text_inputs import holds_texts, listed
from kbert.tasks.multiple_choice.inputs import check_indices, read_choice_inputs
from kbert.text.sequences.packing import PackedText

_ROWS = 16
_WRONG = "`x` must be a tuple of n contexts and of n lists of choices. Received: {}"


class ChoiceBatching(SequenceBatching):
    """Batches of contexts with the same number of choices each, K texts an example."""

    training_rows = _ROWS
    dataset_keys = ("context", "choices")

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Tokenizes contexts (B,) and choices (B, K) to ids (B, K, T), as graph code.

        Args:
            text_a: string (B,), the contexts.
            text_b: string (B, K), their choices.
        """
        shape = tf.shape(text_b)
        contexts = tf.repeat(text_a, shape[1])
        packed = super().preprocess(contexts, tf.reshape(text_b, (-1,)))
        # (B K, T) -> (B, K, T); lengths and truncation likewise
        length = tf.shape(packed.token_ids)[1]
        return PackedText(
            *(
                tf.reshape(x, (*tf.unstack(shape), length) if x.shape.rank == 2 else shape)
                for x in packed
            )
        )

    def read_inputs(self, x: Any) -> Any:
        """Reads `x` as contexts with choices; returns None if it is something else.

        Args:
            x: a tuple of n contexts and of n lists of K choices, a dict or table with `context` and
                `choices`, or anything else.
        """
        return read_choice_inputs(x)

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Returns the probabilities (n, K) of the choices, in the order of `x`.

        Args:
            x: a tuple of n contexts and of n lists of K choices, a dict or table with `context` and
                `choices`, or what Keras takes.
            batch_size: examples a batch, of K texts each; 16 by default.
            **kwargs: further arguments of Keras' `predict`.
        """
        if isinstance(x, tf.data.Dataset):
            return self.model.predict_numbers(self.numbers(x), **kwargs)
        x = listed(x)
        inputs = self.read_inputs(x)
        if inputs is None:
            return self.model.predict_numbers(x, batch_size=batch_size, **kwargs)
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

        Args:
            x: contexts and choices, in the forms of `fit`.
            y: n indices, or None.
            batch_size: examples a batch, of K texts each.
            shuffle: whether to shuffle, differently in each pass.
            seed: seed of the shuffling.
            sample_weight: n weights, or None.
            first_epoch: number of the first pass; above 0 where a run is resumed.
            first_batch: batches to skip; such a dataset is the rest of one epoch.

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
        dataset = read_ahead(dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE))
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
        """Returns batches of examples, their indices, and their weights if there are any.

        Args:
            columns: the inputs that `read_inputs` returns, n targets as numbers, and n weights if
                there are any.
            batch_size: examples a batch, or None.
            batch_tokens: must be None, since an example has several texts.
            shuffle: whether to shuffle, differently in each pass.
            seed: seed of the shuffling.
        """
        if batch_tokens is not None:
            raise ValueError(
                "`batch_tokens` must be None for multiple choice, whose rows hold several texts. "
                f"Received: batch_tokens={batch_tokens}"
            )
        inputs, y, *weights = columns
        if not len(inputs):
            raise ValueError("`x` must hold at least one row. Received: none")
        rows = batch_size or self.training_rows
        x = (inputs.contexts, inputs.choices)
        return self.choices(x, y, rows, shuffle, seed, *weights)

    def call_inputs(self, x: Any) -> Any:
        """Returns the input of a call of the model, with contexts and choices as ids (n, K, T).

        Args:
            x: a tuple of n contexts and of n lists of K choices, or a dict or table of both; or
                token ids, which stay as they are.
        """
        if not holds_texts(x):
            return x
        inputs = self.read_inputs(x)
        if inputs is None:
            raise ValueError(_WRONG.format(type(x).__name__))
        return next(iter(self.choices(x, batch_size=len(inputs))))
