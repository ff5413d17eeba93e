"""What Keras models on raw texts share: strings become batches of token ids on the host."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.pipeline import PackedExamples, batched_dataset, pack_examples
from kbert.pipelines.text_inputs import TextInputs, has_strings, read_text_inputs
from kbert.text.packing import PackedText, pack
from kbert.text.wordpiece import WordPiece

# Cells (rows times longest row) of a batch in evaluation and prediction.
EVALUATION_TOKENS = 4096
_TRAINING_ROWS = 32


class RawTextModel(keras.Model):
    """Adds `fit`, `evaluate` and `predict` on raw strings to a model on token ids.

    A subclass has `encoder`, `tokenizer` and `max_sequence_length`.
    """

    tokenizer: WordPiece
    max_sequence_length: int
    pair: bool

    def check_tokenizer(self) -> None:
        """Raises a ValueError if tokenizer or length do not fit the encoder."""
        encoder = self.encoder
        if len(self.tokenizer.vocabulary) > encoder.vocabulary_size:
            raise ValueError(
                "`tokenizer` must not have more tokens than the encoder has embeddings. Received: "
                f"{len(self.tokenizer.vocabulary)} tokens, {encoder.vocabulary_size} embeddings"
            )
        if not 3 <= self.max_sequence_length <= encoder.max_sequence_length:
            raise ValueError(
                f"`max_sequence_length` must be in [3, {encoder.max_sequence_length}], the "
                f"encoder's positions. Received: max_sequence_length={self.max_sequence_length}"
            )

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Strings (B,) to token ids (B, T), as graph code: `[CLS] a [SEP]` or with `b [SEP]`."""
        texts = [text_a] if text_b is None else [text_a, text_b]
        segments = [self.tokenizer.tokenize(text) for text in texts]
        return pack(segments, self.tokenizer.vocabulary, self.max_sequence_length)

    def pack(self, text_a: Any, text_b: Any = None) -> PackedExamples:
        """Tokenizes n texts, or pairs, once and for all; see `dataset`."""
        return pack_examples(self.tokenizer, text_a, text_b, self.max_sequence_length)

    def dataset(self, packed: PackedExamples, labels: Any = None, **kwargs: Any) -> tf.data.Dataset:
        """Batches of like length; see `kbert.data.pipeline.batched_dataset`."""
        return batched_dataset(packed, labels, **kwargs)

    def encode_targets(self, y: Any) -> Any:
        """Targets as people write them, as numbers."""
        return y

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        validation_data: Any = None,
        shuffle: bool = True,
        sample_weight: Any = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> Any:
        """Keras' `fit`, which also takes raw texts.

        Args:
            x: texts (list or array of str), pairs (a tuple of two), a dict {"text"} or {"text_a",
                "text_b"}, a dataset of batches of these with targets, or what Keras' `fit` takes.
            y: a target a text.
            batch_size: texts a batch; 32 by default.
            batch_tokens: the most cells, rows times longest row, a batch; instead of `batch_size`.
            validation_data: (x, y) or (x, y, weights) in the same forms, or a dataset.
            shuffle: whether to shuffle, anew each epoch.
            sample_weight: a weight a text.
            seed: of the shuffling.
            **kwargs: further arguments of Keras' `fit`.

        Returns:
            Keras' history.

        Raises:
            ValueError: texts and targets differ in number, or a target is not known.
        """
        validation_data = self._held_out(validation_data)
        if isinstance(x, tf.data.Dataset):
            return super().fit(
                self._numbers(x), shuffle=False, validation_data=validation_data, **kwargs
            )
        texts = read_text_inputs(x)
        if texts is None:
            return super().fit(
                x,
                y,
                batch_size=batch_size,
                validation_data=validation_data,
                shuffle=shuffle,
                sample_weight=sample_weight,
                **kwargs,
            )
        rows = None if batch_tokens else batch_size or _TRAINING_ROWS
        dataset = self._labelled(
            texts,
            y,
            sample_weight,
            batch_size=rows,
            batch_tokens=batch_tokens,
            shuffle=shuffle,
            seed=seed,
        )
        return super().fit(dataset, shuffle=False, validation_data=validation_data, **kwargs)

    def evaluate(
        self, x: Any = None, y: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        """Keras' `evaluate`, which also takes raw texts; the arguments are those of `fit`."""
        if isinstance(x, tf.data.Dataset):
            return super().evaluate(self._numbers(x), **kwargs)
        texts = read_text_inputs(x)
        if texts is None:
            return super().evaluate(x, y, sample_weight=sample_weight, **kwargs)
        kwargs.pop("batch_size", None)  # batches of like length are cut by cells instead
        return super().evaluate(self._evaluation_dataset(texts, y, sample_weight), **kwargs)

    def predict(self, x: Any, verbose: Any = 0, **kwargs: Any) -> Any:
        """Answers in the order of `x`.

        Args:
            x: as in `fit`.
            verbose: as in Keras' `predict`.
            **kwargs: further arguments of Keras' `predict`.

        Returns:
            What the model's `predict_step` gives, for all rows.
        """
        if isinstance(x, tf.data.Dataset):
            return super().predict(self._numbers(x), verbose=verbose, **kwargs)
        texts = read_text_inputs(x)
        if texts is None:
            return super().predict(x, verbose=verbose, **kwargs)
        kwargs.pop("batch_size", None)
        return self.predict_packed(self.pack(texts.text_a, texts.text_b), verbose, **kwargs)

    def predict_packed(self, packed: PackedExamples, verbose: Any = 0, **kwargs: Any) -> Any:
        """`predict` for tokenized examples: longest first, then put back in order."""
        if not len(packed):
            return self.empty_prediction()
        dataset = self.dataset(packed, batch_size=None, batch_tokens=EVALUATION_TOKENS)
        found = super().predict(dataset, verbose=verbose, **kwargs)
        order = np.argsort(-packed.lengths, kind="stable")  # as `batch_plan` orders unshuffled rows
        answers = np.empty_like(found)
        answers[order] = found
        return answers

    def empty_prediction(self) -> np.ndarray:
        """The prediction of no rows."""
        return np.zeros((0,), "float32")

    def _labelled(self, texts: TextInputs, y: Any, weight: Any, **kwargs: Any) -> tf.data.Dataset:
        if y is None:
            raise ValueError("`y` must be given with texts. Received: y=None")
        targets = np.asarray(self.encode_targets(y))
        for name, column in (("y", targets), ("sample_weight", weight)):
            if column is not None and len(column) != len(texts):
                raise ValueError(
                    f"`{name}` must have one entry a text. Received: {len(column)} for "
                    f"{len(texts)} texts"
                )
        if not len(texts):
            raise ValueError("`x` must hold at least one text. Received: none")
        weight = None if weight is None else np.asarray(weight, "float32")
        packed = self.pack(texts.text_a, texts.text_b)
        return self.dataset(packed, targets, sample_weights=weight, **kwargs)

    def _held_out(self, data: Any) -> Any:
        """Validation data in the forms of `fit`, as Keras takes them."""
        if isinstance(data, tf.data.Dataset):
            return self._numbers(data)
        texts = read_text_inputs(data[0]) if isinstance(data, tuple) else None
        return data if texts is None else self._evaluation_dataset(texts, *data[1:])

    def _evaluation_dataset(self, texts: TextInputs, y: Any, weight: Any = None) -> tf.data.Dataset:
        return self._labelled(texts, y, weight, batch_size=None, batch_tokens=EVALUATION_TOKENS)

    def _numbers(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Maps a dataset of batches of texts to batches of token ids, on the host."""
        if not has_strings(dataset):
            return dataset

        def encode(x: Any, *rest: Any) -> Any:
            if isinstance(x, dict):
                texts = [x[key] for key in sorted(x)]
            else:
                texts = list(x) if isinstance(x, tuple) else [x]
            inputs = model_inputs(self.preprocess(*texts))
            return (inputs, *rest) if rest else inputs

        return dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)


def model_inputs(packed: PackedText) -> dict[str, Any]:
    """The part of packed text that an encoder takes."""
    return {
        "token_ids": packed.token_ids,
        "segment_ids": packed.segment_ids,
        "padding_mask": packed.padding_mask,
    }
