"""What Keras models on raw texts share: strings become batches of token ids on the host."""

from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.packed_examples import PackedExamples
from kbert.data.pipeline import batched_dataset, pack_examples, read_ahead
from kbert.pipelines.epoch_teller import told_epochs
from kbert.pipelines.text_inputs import TextInputs, has_strings, read_text_inputs
from kbert.pipelines.text_model import TextModel
from kbert.text.packing import PackedText, pack
from kbert.text.wordpiece import WordPiece

# Cells (rows times longest row) of a batch in evaluation and prediction.
EVALUATION_TOKENS = 4096


class RawTextModel(TextModel):
    """Adds `fit`, `evaluate` and `predict` on raw strings to a model with an `encoder`."""

    pair: bool
    training_rows = 32
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

    def read_inputs(self, x: Any) -> Any:
        """`x` as texts or pairs, or None if it is something else."""
        return read_text_inputs(x)

    def encode_targets(self, y: Any) -> Any:
        """Targets as people write them, as numbers."""
        return y

    def encode_names(self, names: Any) -> Any:
        """String targets (B,) of a dataset as numbers, as graph code.

        Raises:
            ValueError: the task has no names.
        """
        raise ValueError(f"targets must be numbers. Received: strings {names}")

    def fit(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = "auto",
        *,
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
            epochs: passes over the data.
            verbose: as in Keras' `fit`.
            batch_tokens: the most cells, rows times longest row, a batch; instead of `batch_size`.
            validation_data: (x, y) or (x, y, weights) in the same forms, or a dataset.
            shuffle: whether to shuffle, anew each epoch.
            sample_weight: a weight a text.
            seed: of the shuffling.
            **kwargs: further arguments of Keras' `fit`. With texts, `validation_split` holds out
                the last of them, as Keras does with arrays.

        Returns:
            Keras' history.

        Raises:
            ValueError: texts and targets differ in number, or a target is not known.
        """
        kwargs |= {"epochs": epochs, "verbose": verbose}
        kwargs["validation_data"] = self._held_out(validation_data)
        if isinstance(x, tf.data.Dataset):
            kwargs["callbacks"] = told_epochs(x, kwargs.get("callbacks"))
            kwargs |= {"y": y, "sample_weight": sample_weight}  # which Keras refuses
            return super().fit(self._numbers(x), shuffle=False, **kwargs)
        texts = self.read_inputs(x)
        if texts is None:
            kwargs |= {"shuffle": shuffle, "sample_weight": sample_weight}
            return super().fit(x, self._targets(y), batch_size, **kwargs)
        columns = self._columns(texts, y, sample_weight)
        held_out = kwargs.pop("validation_split", 0.0)
        if held_out and validation_data is None:
            kept = int(len(texts) * (1.0 - held_out))
            kwargs["validation_data"] = self.batches(tuple(column[kept:] for column in columns))
            columns = tuple(column[:kept] for column in columns)
        rows = None if batch_tokens else batch_size or self.training_rows
        dataset = self.batches(columns, rows, batch_tokens, shuffle=shuffle, seed=seed)
        kwargs["callbacks"] = told_epochs(dataset, kwargs.get("callbacks"))
        return super().fit(dataset, shuffle=False, **kwargs)

    def evaluate(
        self,
        x: Any = None,
        y: Any = None,
        batch_size: int | None = None,
        verbose: Any = "auto",
        sample_weight: Any = None,
        **kwargs: Any,
    ) -> Any:
        """Keras' `evaluate`, which also takes raw texts; the arguments are those of `fit`."""
        kwargs["verbose"] = verbose
        if isinstance(x, tf.data.Dataset):
            kwargs |= {"y": y, "sample_weight": sample_weight}
            return super().evaluate(self._numbers(x), **kwargs)
        texts = self.read_inputs(x)
        if texts is None:
            kwargs["sample_weight"] = sample_weight
            return super().evaluate(x, self._targets(y), batch_size, **kwargs)
        columns = self._columns(texts, y, sample_weight)
        return super().evaluate(self.batches(columns, batch_size), **kwargs)

    def predict(
        self, x: Any, batch_size: int | None = None, verbose: Any = 0, **kwargs: Any
    ) -> Any:
        """Answers in the order of `x`.

        Args:
            x: as in `fit`.
            batch_size: texts a batch; by default as many as fill a budget of cells.
            verbose: as in Keras' `predict`.
            **kwargs: further arguments of Keras' `predict`.

        Returns:
            What the model's `predict_step` gives, for all rows.
        """
        if isinstance(x, tf.data.Dataset):
            return super().predict(self._numbers(x), verbose=verbose, **kwargs)
        texts = self.read_inputs(x)
        if texts is None:
            return super().predict(x, batch_size, verbose=verbose, **kwargs)
        packed = self.pack(texts.text_a, texts.text_b)
        return self.predict_packed(packed, verbose, batch_size, **kwargs)

    def predict_packed(
        self,
        packed: PackedExamples,
        verbose: Any = 0,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """`predict` for tokenized examples: longest first, then put back in order."""
        if not len(packed):
            return self.empty_prediction()
        budget = None if batch_size else EVALUATION_TOKENS
        dataset = self.dataset(packed, batch_size=batch_size, batch_tokens=budget)
        found = super().predict(dataset, verbose=verbose, **kwargs)
        order = np.argsort(-packed.lengths, kind="stable")  # as `batch_plan` orders unshuffled rows
        answers = np.empty_like(found)
        answers[order] = found
        return answers

    def predict_texts(self, x: Any) -> tuple[Any, list[bool]]:
        """What `predict` gives for texts or pairs, and whether each was cut.

        Raises:
            ValueError: `x` is something else.
        """
        texts = self.read_inputs(x)
        if texts is None:
            raise ValueError(f"`x` must be texts or pairs of texts. Received: {type(x).__name__}")
        packed = self.pack(texts.text_a, texts.text_b)
        return self.predict_packed(packed), packed.truncated.tolist()

    def empty_prediction(self) -> np.ndarray:
        """The prediction of no rows."""
        return np.zeros((0,), "float32")

    def _columns(self, texts: TextInputs, y: Any, weight: Any = None) -> tuple[Any, ...]:
        """Texts, their targets as numbers, and their weights if there are any."""
        if y is None:
            raise ValueError("`y` must be given with texts. Received: y=None")
        targets = np.asarray(self.encode_targets(y))
        for name, column in (("y", targets), ("sample_weight", weight)):
            if column is not None and len(column) != len(texts):
                raise ValueError(
                    f"`{name}` must have one entry a text. Received: {len(column)} for "
                    f"{len(texts)} texts"
                )
        if weight is None:
            return texts, targets
        return texts, targets, np.asarray(weight, "float32")

    def batches(
        self,
        columns: tuple[Any, ...],
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        shuffle: bool = False,
        seed: int = 0,
    ) -> tf.data.Dataset:
        """Batches of texts, their targets as numbers, and their weights if there are any.

        By default of as many texts as fill a budget of cells.
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
        """Validation data in the forms of `fit`, as Keras takes them."""
        if isinstance(data, tf.data.Dataset):
            return self._numbers(data)
        if not isinstance(data, tuple):
            return data
        texts = self.read_inputs(data[0])
        if texts is None:
            return (data[0], *map(self._targets, data[1:2]), *data[2:])
        return self.batches(self._columns(texts, *data[1:]))

    def _targets(self, y: Any) -> Any:
        return None if y is None else np.asarray(self.encode_targets(y))

    def _numbers(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Maps a dataset of batches of texts to batches of token ids, on the host."""
        if not has_strings(dataset):
            return dataset

        def encode(x: Any, *rest: Any) -> Any:
            if isinstance(x, dict):
                known = set(self.dataset_keys) == set(x)
                texts = [x[key] for key in (self.dataset_keys if known else sorted(x))]
            else:
                texts = list(x) if isinstance(x, tuple) else [x]
            inputs = model_inputs(self.preprocess(*texts))
            if rest and getattr(rest[0], "dtype", None) == tf.string:
                rest = (self.encode_names(rest[0]), *rest[1:])
            return (inputs, *rest) if rest else inputs

        return read_ahead(dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE))


def check_vocabulary(tokenizer: WordPiece, encoder: Any) -> None:
    """Raises a ValueError if the tokenizer has ids that the encoder has no embeddings for."""
    if len(tokenizer.vocabulary) > encoder.vocabulary_size:
        raise ValueError(
            "`tokenizer` must not have more tokens than the encoder has embeddings. Received: "
            f"{len(tokenizer.vocabulary)} tokens, {encoder.vocabulary_size} embeddings"
        )


def model_inputs(packed: PackedText) -> dict[str, Any]:
    """The part of packed text that an encoder takes."""
    return {
        "token_ids": packed.token_ids,
        "segment_ids": packed.segment_ids,
        "padding_mask": packed.padding_mask,
    }
