"""Batches of token ids from raw texts, one sequence a text or pair."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import batched_dataset, pack_examples, read_ahead
from kbert.data.batches.packed_examples import PackedExamples
from kbert.data.batches.text_tensor import text_tensor
from kbert.pipelines.base.batch_calls import BatchCalls
from kbert.pipelines.base.text_inputs import (
    TextInputs,
    as_column,
    check_pair,
    has_strings,
    listed,
    read_text_inputs,
)
from kbert.pipelines.base.text_model import TextModel, check_vocabulary, model_inputs
from kbert.text.sequences.packing import PackedText, pack

# Positions (padding included) of a batch in evaluation and prediction.
EVALUATION_TOKENS = 4096


class RawTextBatches(BatchCalls, TextModel):
    """Turns raw strings into batches for a model with an `encoder`."""

    pair: bool
    # The order of the texts where a dataset has them by name; by default that of the names.
    dataset_keys: tuple[str, ...] = ()

    def check_tokenizer(self) -> None:
        """Raises a ValueError if tokenizer or length do not fit the encoder."""
        check_vocabulary(self.tokenizer, self.encoder)
        positions = self.encoder.max_sequence_length
        if not 3 <= self.max_sequence_length <= positions:
            raise ValueError(
                f"`max_sequence_length` must be in [3, {positions}], the encoder's positions. "
                f"Received: max_sequence_length={self.max_sequence_length}"
            )

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Tokenizes strings (B,) to ids (B, T), graph code: `[CLS] a [SEP]` or with `b [SEP]`.

        Args:
            text_a: string (B,), the texts, or the first texts of pairs.
            text_b: string (B,), the second texts; None for single texts.
        """
        texts = [text_a] if text_b is None else [text_a, text_b]
        segments = [self.tokenizer.tokenize(text) for text in texts]
        return pack(segments, self.tokenizer.vocabulary, self.max_sequence_length)

    def pack(self, text_a: Any, text_b: Any = None) -> PackedExamples:
        """Tokenizes n texts, or pairs, once for all epochs; see `dataset`.

        Args:
            text_a: n str or bytes, the texts, or the first texts of pairs.
            text_b: n str or bytes, the second texts; None for single texts.
        """
        return pack_examples(self.tokenizer, text_a, text_b, self.max_sequence_length)

    def dataset(self, packed: PackedExamples, labels: Any = None, **kwargs: Any) -> tf.data.Dataset:
        """Returns length-bucketed batches; see `kbert.data.batches.dataset.batched_dataset`.

        Args:
            packed: the examples, from `pack`.
            labels: n targets as numbers, or None.
            **kwargs: arguments of `batched_dataset`, such as `batch_size`, `batch_tokens`,
                `shuffle` and `seed`.
        """
        return batched_dataset(packed, labels, **kwargs)

    def read_inputs(self, x: Any) -> Any:
        """Reads `x` as texts or pairs; returns None if it is something else.

        Args:
            x: raw texts in the forms of `fit`, or anything else.
        """
        return read_text_inputs(x, self.pair)

    def encode_targets(self, y: Any) -> Any:
        """Encodes targets, as users write them, as numbers.

        Args:
            y: n targets.
        """
        return y

    def encode_names(self, names: Any) -> Any:
        """Encodes string targets (B,) of a dataset as numbers, as graph code.

        Args:
            names: string (B,).

        Raises:
            ValueError: the task has no names of targets.
        """
        raise ValueError(f"targets must be numbers. Received: strings {names}")

    def _columns(self, texts: TextInputs, y: Any, weight: Any = None) -> tuple[Any, ...]:
        """Returns texts, their targets as numbers, and their weights if there are any."""
        if y is None:
            raise ValueError(
                "`y` must be given with texts. Received: y=None (of a table, give a column)"
            )
        targets, weight = self._targets(y), weight_array(weight)
        for name, column in (("y", targets), ("sample_weight", weight)):
            if column is not None and len(column) != len(texts):
                raise ValueError(
                    f"`{name}` must have one entry a text. Received: {len(column)} for "
                    f"{len(texts)} texts"
                )
        return (texts, targets) if weight is None else (texts, targets, weight)

    def batches(
        self,
        columns: tuple[Any, ...],
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
    ) -> tf.data.Dataset:
        """Returns batches of texts, their targets as numbers, and their weights if there are any.

        By default each has as many texts as fill a budget of positions.

        Args:
            columns: the inputs that `read_inputs` returns, n targets as numbers, and n weights if
                there are any.
            batch_size: examples a batch, or None.
            batch_tokens: the most positions of a batch, padding included, or None.
            shuffle: whether to shuffle, differently in each pass.
            seed: seed of the shuffling.
        """
        texts, targets, *weights = columns
        if not len(texts):
            raise ValueError("`x` must hold at least one text. Received: none")
        if batch_size is None and batch_tokens is None:
            batch_tokens = EVALUATION_TOKENS
        packed = self.pack(texts.text_a, texts.text_b)
        cut = {"batch_size": batch_size, "batch_tokens": batch_tokens}
        weight = weights[0] if weights else None
        return self.dataset(
            packed, targets, sample_weights=weight, shuffle=shuffle, seed=seed, **cut
        )

    def _held_out(self, data: Any) -> Any:
        """Converts validation data in the forms of `fit` to a form that Keras takes."""
        if isinstance(data, tf.data.Dataset):
            return self._numbers(data)
        if not isinstance(data, tuple):
            return data
        x = listed(data[0])
        texts = self.read_inputs(x)
        if texts is None:
            return (x, *map(self._targets, data[1:2]), *data[2:])
        return self.batches(self._columns(texts, *data[1:]))

    def _targets(self, y: Any) -> Any:
        """Encodes targets, as users write them, as an array of numbers, or None."""
        return None if y is None else np.asarray(self.encode_targets(as_column(listed(y))))

    def _numbers(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Maps a dataset of batches of texts to batches of token ids, on the host."""
        if not has_strings(dataset):
            return dataset

        spec = dataset.element_spec
        x = spec[0] if isinstance(spec, tuple) else spec
        check_pair(isinstance(x, dict | tuple) and len(x) == 2, self.pair)

        def encode(x: Any, *rest: Any) -> Any:
            inputs = self.token_inputs(x)
            if rest and getattr(rest[0], "dtype", None) == tf.string:
                rest = (self.encode_names(rest[0]), *rest[1:])
            return (inputs, *rest) if rest else inputs

        return read_ahead(dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE))

    def token_inputs(self, x: Any) -> dict[str, Any]:
        """Tokenizes string tensors (B,), pairs as a tuple or dict of two, as graph code.

        Args:
            x: string (B,), or a tuple, list or dict of two such for pairs.
        """
        if isinstance(x, dict):
            known = set(self.dataset_keys) == set(x)
            texts = [x[key] for key in (self.dataset_keys if known else sorted(x))]
        else:
            texts = list(x) if isinstance(x, list | tuple) else [x]
        return model_inputs(self.preprocess(*texts))

    def call_inputs(self, x: Any) -> dict[str, Any]:
        """Tokenizes texts or pairs for a call of the model.

        Args:
            x: texts, or pairs for a model with pair=True.
        """
        if all(isinstance(one, tf.Tensor) for one in keras.tree.flatten(x)):
            check_pair(isinstance(x, dict | list | tuple) and len(x) == 2, self.pair)
            return self.token_inputs(x)
        texts = self.read_inputs(x)
        columns = (texts.text_a,) if texts.text_b is None else (texts.text_a, texts.text_b)
        return self.token_inputs([text_tensor(column) for column in columns])

    def one_batch(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Makes one batch of texts with their targets and weights; see `BatchCalls`.

        Args:
            x: raw texts in the forms of `fit`, or what Keras takes.
            y: a target a text, or None.
            sample_weight: a weight a text, or None.
        """
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            return x, self._targets(y), weight_array(sample_weight)
        columns = self._columns(texts, y, sample_weight)
        return next(iter(self.batches(columns, batch_size=len(texts))))


def weight_array(weight: Any) -> np.ndarray | None:
    """Converts weights of texts to float32 (n,); None stays."""
    return None if weight is None else np.asarray(as_column(listed(weight)), "float32")
