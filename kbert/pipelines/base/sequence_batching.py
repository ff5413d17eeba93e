"""Batches of raw texts or pairs of texts of which each becomes one sequence of token ids."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import read_ahead, with_epoch_counter
from kbert.data.batches.packed_examples import PackedExamples, pack_examples, text_tensor
from kbert.pipelines.base.batching import EVALUATION_TOKENS, Batching, check_vocabulary
from kbert.pipelines.base.signatures import model_inputs
from kbert.pipelines.base.text_inputs import (
    TextInputs,
    as_column,
    check_pair,
    has_strings,
    holds_texts,
    listed,
    read_text_inputs,
    weight_array,
)
from kbert.text.sequences.packing import PackedText, pack


class SequenceBatching(Batching):
    """Batches of single texts or pairs, for a model with `tokenizer`, `encoder` and `pair`.

    The model's `predict_step` has an output a text, and `empty_prediction` is that for no texts.
    """

    # The order of the texts where a dataset has them by name; by default that of the names.
    dataset_keys: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises a ValueError if tokenizer or length do not fit the encoder."""
        model = self.model
        check_vocabulary(model.tokenizer, model.encoder)
        positions = model.encoder.max_sequence_length
        if not 3 <= model.max_sequence_length <= positions:
            raise ValueError(
                f"`max_sequence_length` must be in [3, {positions}], the encoder's positions. "
                f"Received: max_sequence_length={model.max_sequence_length}"
            )

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Tokenizes strings (B,) to ids (B, T), graph code: `[CLS] a [SEP]` or with `b [SEP]`.

        Args:
            text_a: string (B,), the texts, or the first texts of pairs.
            text_b: string (B,), the second texts; None for single texts.
        """
        tokenizer = self.model.tokenizer
        texts = [text_a] if text_b is None else [text_a, text_b]
        segments = [tokenizer.tokenize(text) for text in texts]
        return pack(segments, tokenizer.vocabulary, self.model.max_sequence_length)

    def pack(self, text_a: Any, text_b: Any = None) -> PackedExamples:
        """Tokenizes n texts, or pairs, once for all epochs.

        Args:
            text_a: n str or bytes, the texts, or the first texts of pairs.
            text_b: n str or bytes, the second texts; None for single texts.
        """
        return pack_examples(
            self.model.tokenizer, text_a, text_b, self.model.max_sequence_length
        )

    def read_inputs(self, x: Any) -> Any:
        """Reads `x` as texts or pairs; returns None if it is something else."""
        return read_text_inputs(x, self.model.pair)

    def encode_targets(self, y: Any) -> Any:
        """Encodes n targets, as users write them, as numbers."""
        return y

    def encode_names(self, names: Any) -> Any:
        """Encodes string targets (B,) of a dataset as numbers, as graph code.

        Raises:
            ValueError: the task has no names of targets.
        """
        raise ValueError(f"targets must be numbers. Received: strings {names}")

    def fit_arguments(
        self,
        x: Any,
        y: Any,
        batch_size: int | None,
        batch_tokens: int | None,
        validation_data: Any,
        shuffle: bool,
        sample_weight: Any,
        seed: int,
        **kwargs: Any,
    ) -> dict[str, Any]:
        """Returns the arguments of Keras' `fit` for those of `TaskModel.fit`.

        With texts, `validation_split` holds out the last of them, as Keras does with arrays.
        """
        kwargs["validation_data"] = self._held_out(validation_data)
        kwargs["class_weight"] = self.encode_class_weight(kwargs.get("class_weight"))
        if isinstance(x, tf.data.Dataset):
            kwargs["callbacks"] = with_epoch_counter(x, kwargs.get("callbacks"))
            kwargs |= {"y": y, "sample_weight": sample_weight}  # which Keras refuses
            return {**kwargs, "x": self.numbers(x), "shuffle": False}
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            kwargs |= {"shuffle": shuffle, "sample_weight": weight_array(sample_weight)}
            return {**kwargs, "x": x, "y": self._targets(y), "batch_size": batch_size}
        columns = self._columns(texts, y, sample_weight)
        held_out = kwargs.pop("validation_split", 0.0)
        if held_out and validation_data is None:
            kept = int(len(texts) * (1.0 - held_out))
            kwargs["validation_data"] = self.batches(tuple(column[kept:] for column in columns))
            columns = tuple(column[:kept] for column in columns)
        rows = None if batch_tokens else batch_size or self.training_rows
        dataset = self.batches(columns, rows, batch_tokens, shuffle=shuffle, seed=seed)
        kwargs["callbacks"] = with_epoch_counter(dataset, kwargs.get("callbacks"))
        return {**kwargs, "x": dataset, "shuffle": False}

    def evaluate_arguments(
        self, x: Any, y: Any, batch_size: int | None, sample_weight: Any
    ) -> dict[str, Any]:
        """Returns the arguments of Keras' `evaluate` for those of `TaskModel.evaluate`."""
        if isinstance(x, tf.data.Dataset):
            return {"x": self.numbers(x), "y": y, "sample_weight": sample_weight}
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            given = {"x": x, "y": self._targets(y), "batch_size": batch_size}
            return {**given, "sample_weight": weight_array(sample_weight)}
        return {"x": self.batches(self._columns(texts, y, sample_weight), batch_size)}

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Predicts texts in their order, or what Keras' `predict` takes.

        Args:
            x: texts or pairs in the forms of `fit`, a dataset of batches of them, or token ids.
            batch_size: texts a batch; by default as many as fill a budget of positions.
            **kwargs: further arguments of Keras' `predict`.
        """
        if isinstance(x, tf.data.Dataset):
            return self.model.predict_numbers(self.numbers(x), **kwargs)
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            return self.model.predict_numbers(x, batch_size=batch_size, **kwargs)
        packed = self.pack(texts.text_a, texts.text_b)
        return self.predict_packed(packed, batch_size, **kwargs)

    def predict_packed(
        self, packed: PackedExamples, batch_size: int | None = None, **kwargs: Any
    ) -> Any:
        """Predicts tokenized examples, longest first, and restores their order.

        Args:
            packed: the examples, from `pack`.
            batch_size: examples a batch; None for as many as fill a budget of positions, padding
                included.
            **kwargs: further arguments of Keras' `predict`.
        """
        if not len(packed):
            return self.model.empty_prediction()
        budget = None if batch_size else EVALUATION_TOKENS
        dataset = self.model.dataset(packed, batch_size=batch_size, batch_tokens=budget)
        found = self.model.predict_numbers(dataset, **{"verbose": 0, **kwargs})
        order = np.argsort(-packed.lengths, kind="stable")  # as `batch_plan` orders unshuffled rows
        answers = np.empty_like(found)
        answers[order] = found
        return answers

    def predict_texts(self, x: Any) -> tuple[Any, list[bool]]:
        """Returns the predictions for texts or pairs, and whether each was truncated.

        Args:
            x: texts, or pairs for a model with pair=True, in the forms of `fit`.

        Raises:
            ValueError: `x` is something else.
        """
        x = listed(x)
        texts = self.read_inputs(x)
        if texts is None:
            held = f" that begins with {x[0]!r:.80}" if isinstance(x, list) and x else ""
            raise ValueError(
                f"`x` must be texts or pairs of texts. Received: {type(x).__name__}{held}"
            )
        packed = self.pack(texts.text_a, texts.text_b)
        return self.predict_packed(packed), packed.truncated.tolist()

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
        return self.model.dataset(
            packed, targets, sample_weights=weight, shuffle=shuffle, seed=seed, **cut
        )

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

    def _held_out(self, data: Any) -> Any:
        """Converts validation data in the forms of `fit` to a form that Keras takes."""
        if isinstance(data, tf.data.Dataset):
            return self.numbers(data)
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

    def numbers(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Maps a dataset of batches of texts to batches of token ids, on the host."""
        if not has_strings(dataset):
            return dataset

        spec = dataset.element_spec
        x = spec[0] if isinstance(spec, tuple) else spec
        check_pair(isinstance(x, dict | tuple) and len(x) == 2, self.model.pair)

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

    def call_inputs(self, x: Any) -> Any:
        """Returns the input of a call of the model, with texts or pairs tokenized.

        Args:
            x: texts, or pairs for a model with pair=True; or token ids, which stay as they are.
        """
        if not holds_texts(x):
            return x
        if all(isinstance(one, tf.Tensor) for one in keras.tree.flatten(x)):
            check_pair(isinstance(x, dict | list | tuple) and len(x) == 2, self.model.pair)
            return self.token_inputs(x)
        texts = self.read_inputs(x)
        columns = (texts.text_a,) if texts.text_b is None else (texts.text_a, texts.text_b)
        return self.token_inputs([text_tensor(column) for column in columns])

    def one_batch(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Makes one batch of texts with their targets and weights; see `Batching`.

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
