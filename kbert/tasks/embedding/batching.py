"""Batches of texts to embed, single or several an example, for `fit`, `evaluate` and `predict`.

Shapes: B or n examples, K texts of each, T tokens, D width of a vector.
"""

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import read_ahead
from kbert.data.batches.packed_examples import plain, text_tensor
from kbert.pipelines.batching import check_count
from kbert.pipelines.sequence_batching import SequenceBatching
from kbert.pipelines.signatures import model_inputs
from kbert.pipelines.text_inputs import finite_numbers, tensors_of, weight_array
from kbert.tasks.embedding.inputs import (
    FORMS,
    PackedTuples,
    TextColumns,
    read_text_columns,
    tuple_dataset,
)


class EmbeddingBatching(SequenceBatching):
    """Batches of texts, and of examples of several texts, for a model that embeds each text."""

    def read_inputs(self, x: Any) -> Any:
        return read_text_columns(x)

    def pack(self, *columns: Any) -> Any:
        """Tokenizes n texts; of several columns, all texts of an example after each other."""
        if len(columns) == 1:
            return super().pack(columns[0])
        return PackedTuples(super().pack(TextColumns(columns).in_rows), len(columns))

    def dataset(self, packed: Any, targets: Any = None, **kwargs: Any) -> tf.data.Dataset:
        """Returns batches of `pack`; those of single texts are of similar length."""
        if isinstance(packed, PackedTuples):
            return tuple_dataset(packed, targets, **kwargs)
        return super().dataset(packed, targets, **kwargs)

    def encode_targets(self, y: Any) -> np.ndarray:
        """Converts scores, n or (n, 1), to float32 (n,).

        Raises:
            ValueError: an entry is not a finite number, or there are several an example.
        """
        return finite_numbers(y, "score an example")

    def columns(self, x: Any) -> tuple[Any, ...]:
        """Returns the columns of texts that `x` holds.

        Raises:
            ValueError: it holds something else.
        """
        x = self.read(x)
        texts = self.read_inputs(x)
        if texts is None:
            held = f" that begins with {x[0]!r:.80}" if isinstance(x, list) and x else ""
            raise ValueError(f"`x` must be texts. Received: {type(x).__name__}{held}")
        found: tuple[Any, ...] = texts.columns
        return found

    def predict_texts(self, x: Any) -> tuple[Any, list[bool]]:
        """Returns the vectors of texts, and whether each was truncated."""
        columns = self.columns(x)
        if len(columns) > 1:
            raise ValueError(f"`x` must be one list. Received: {len(columns)} columns")
        packed = super().pack(columns[0])
        return self.predict_packed(packed), packed.truncated.tolist()

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Returns the vectors of texts (n, D), or of examples of K texts (n, K, D), in order."""
        if isinstance(x, tf.data.Dataset):
            return self.model.predict_numbers(self.numbers(x), **kwargs)
        x = self.read(x, batch_size)
        texts = self.read_inputs(x)
        if texts is None:
            return self.model.predict_numbers(x, batch_size=batch_size, **kwargs)
        found = self.predict_packed(super().pack(texts.in_rows), batch_size, **kwargs)
        count = len(texts.columns)
        return found if count == 1 else found.reshape(len(texts), count, self.model.width)

    def batches(
        self,
        columns: tuple[Any, ...],
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
    ) -> tf.data.Dataset:
        """Returns batches of examples of several texts, with targets, and weights if any."""
        texts, targets, *weights = columns
        if not len(texts):
            raise ValueError("`x` must hold at least one text. Received: none")
        given: dict[str, Any] = self.training_cut(batch_size, batch_tokens)
        given |= {"sample_weights": weights[0] if weights else None}
        return self.dataset(self.pack(*texts.columns), targets, shuffle=shuffle, seed=seed, **given)

    def _columns(self, texts: Any, y: Any, weight: Any = None) -> tuple[Any, ...]:
        """Returns texts, scores or else the numbers of the texts, and weights if there are any."""
        if len(texts.columns) < 2:
            raise ValueError(
                "`x` must be pairs of texts to learn from, a tuple of two lists or more. "
                "Received: single texts"
            )
        targets, weight = self._targets(y), weight_array(weight)
        targets = texts.numbers if targets is None else targets
        check_count("y", targets, len(texts))
        if y is not None and len(texts) and hasattr(self.model.loss, "check_scores"):
            self.model.loss.check_scores(float(targets.min()), float(targets.max()))
        if weight is None:
            return texts, targets
        check_count("sample_weight", weight, len(texts))
        return texts, targets, weight

    def numbers(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Maps a dataset of batches of texts to batches of token ids, on the host."""
        spec = tf.nest.flatten(dataset.element_spec)
        if not any(part.dtype == tf.string for part in spec):
            return dataset

        def encode(x: Any, *rest: Any) -> Any:
            inputs = self.token_inputs(x)
            columns = tensors_of(x, FORMS)
            if not rest and len(columns) > 1:
                rest = (_numbers_of(columns),)
            return (inputs, *rest) if rest else inputs

        return read_ahead(dataset.map(plain(encode), num_parallel_calls=tf.data.AUTOTUNE))

    def token_inputs(self, x: Any) -> dict[str, Any]:
        """Tokenizes string tensors (B,), or K of them, to ids (B, T), or (B, K, T); graph code."""
        columns = tensors_of(x, FORMS)
        flat = columns[0] if len(columns) == 1 else tf.reshape(tf.stack(columns, 1), (-1,))
        inputs = model_inputs(self.preprocess(flat))
        if len(columns) == 1:
            return inputs
        shape = (-1, len(columns), tf.shape(inputs["token_ids"])[1])
        return {name: tf.reshape(column, shape) for name, column in inputs.items()}

    def call_inputs(self, x: Any) -> Any:
        if not self.holds_texts(x):
            return x
        if all(isinstance(one, tf.Tensor) for one in keras.tree.flatten(x)):
            return self.token_inputs(x)
        return self.token_inputs(tuple(map(text_tensor, self.read_inputs(x).columns)))


def _numbers_of(columns: Sequence[Any]) -> Any:
    """Numbers the texts of a batch, int32 (B, K), as graph code."""
    stacked = tf.stack(columns, 1)
    return tf.reshape(tf.unique(tf.reshape(stacked, (-1,))).idx, tf.shape(stacked))
