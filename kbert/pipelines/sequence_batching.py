"""Batches of raw texts or pairs of texts of which each becomes one sequence of token ids."""

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import read_ahead, with_epoch_counter
from kbert.data.batches.packed_examples import PackedExamples, pack_examples, plain, text_tensor
from kbert.pipelines.batching import (
    EVALUATION_TOKENS,
    Batching,
    check_count,
    check_given,
    check_length,
    check_no_budget,
    check_vocabulary,
)
from kbert.pipelines.signatures import model_inputs
from kbert.pipelines.text_inputs import (
    TextInputs,
    as_column,
    check_pair,
    checked_inputs,
    listed,
    read_text_inputs,
    tensors_of,
    weight_array,
)
from kbert.text.sequences.packing import PackedText, pack


class SequenceBatching(Batching):
    """Batches of single texts or pairs, for a model with `tokenizer`, `encoder` and `pair`.

    The model's `batch_outputs` has an output a text, and `empty_prediction` is that for no texts.
    """

    # The names that texts may have in a dataset, in the order of `preprocess`.
    dataset_forms: tuple[tuple[str, ...], ...] = (("text",), ("text_a",), ("text_a", "text_b"))

    def check(self) -> None:
        """Raises a ValueError if tokenizer, length or `pair` do not fit the encoder or the task."""
        model = self.model
        pair = getattr(model, "pair", None)  # of embedders, any text
        if not isinstance(pair, bool | None):
            raise ValueError(f"`pair` must be True or False. Received: pair={pair!r}")
        check_vocabulary(model.tokenizer, model.encoder)
        check_length(model, least=3)

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Tokenizes strings (B,) to ids (B, T), graph code: `[CLS] a [SEP]` or with `b [SEP]`."""
        tokenizer = self.model.tokenizer
        texts = [text_a] if text_b is None else [text_a, text_b]
        segments = [tokenizer.tokenize(text) for text in texts]
        return pack(segments, tokenizer.vocabulary, self.model.max_sequence_length)

    def pack(self, text_a: Any, text_b: Any = None) -> PackedExamples:
        """Tokenizes n texts (str or bytes), or pairs, once for all epochs."""
        return pack_examples(self.model.tokenizer, text_a, text_b, self.model.max_sequence_length)

    def training_examples(self, x: Any, y: Any) -> tuple[Any, Any]:
        texts = self.read_inputs(listed(x))
        if texts is None:
            raise ValueError(f"`x` must be texts or pairs. Received: {type(x).__name__}")
        _, targets = self._columns(texts, y)
        return self.pack(texts.text_a, texts.text_b), targets

    def read_inputs(self, x: Any) -> Any:
        """Reads `x` as texts or pairs; returns None if it is something else."""
        return read_text_inputs(x, self.model.pair)

    def encode_targets(self, y: Any) -> Any:
        """Encodes n targets, as users write them, as numbers."""
        return y

    def encode_names(self, names: Any) -> Any:
        """Encodes string targets (B,) of a dataset as numbers, as graph code."""
        raise ValueError(f"targets must be numbers. Received: strings {names}")

    def encode_numbers(self, targets: Any) -> Any:
        """Encodes numbers as targets of a dataset, as graph code."""
        return targets

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
            check_no_budget(batch_tokens)
            kwargs["callbacks"] = with_epoch_counter(x, kwargs.get("callbacks"))
            kwargs |= {"y": y, "sample_weight": sample_weight}  # which Keras refuses
            return {**kwargs, "x": self.numbers(x), "shuffle": False}
        x = self.read(x, batch_size)
        texts = self.read_inputs(x)
        if texts is None:
            check_no_budget(batch_tokens)
            kwargs |= {"shuffle": shuffle, "sample_weight": weight_array(sample_weight)}
            return {**kwargs, "x": x, "y": self._targets(y), "batch_size": batch_size}
        columns = self._columns(texts, y, sample_weight)
        held_out = kwargs.pop("validation_split", 0.0)
        if held_out and validation_data is None:
            kept = kept_of_split(held_out, len(texts))
            kwargs["validation_data"] = self.batches(tuple(column[kept:] for column in columns))
            columns = tuple(column[:kept] for column in columns)
        cut = self.training_cut(batch_size, batch_tokens)
        dataset = self.batches(columns, **cut, shuffle=shuffle, seed=seed)
        kwargs["callbacks"] = with_epoch_counter(dataset, kwargs.get("callbacks"))
        return {**kwargs, "x": dataset, "shuffle": False}

    def evaluate_arguments(
        self, x: Any, y: Any, batch_size: int | None, sample_weight: Any
    ) -> dict[str, Any]:
        if isinstance(x, tf.data.Dataset):
            return {"x": self.numbers(x), "y": y, "sample_weight": sample_weight}
        x = self.read(x, batch_size)
        texts = self.read_inputs(x)
        if texts is None:
            given = {"x": x, "y": self._targets(y), "batch_size": batch_size}
            return {**given, "sample_weight": weight_array(sample_weight)}
        return {"x": self.batches(self._columns(texts, y, sample_weight), batch_size)}

    def predict(self, x: Any, batch_size: int | None = None, **kwargs: Any) -> Any:
        """Predicts texts in their order, or what Keras' `predict` takes.

        By default a batch has as many texts as fill a budget of positions.
        """
        if isinstance(x, tf.data.Dataset):
            return self.model.predict_numbers(self.numbers(x), **kwargs)
        x = self.read(x, batch_size)
        texts = self.read_inputs(x)
        if texts is None:
            return self.model.predict_numbers(x, batch_size=batch_size, **kwargs)
        packed = self.pack(texts.text_a, texts.text_b)
        return self.predict_packed(packed, batch_size, **kwargs)

    def predict_packed(
        self, packed: PackedExamples, batch_size: int | None = None, **kwargs: Any
    ) -> Any:
        """Predicts examples from `pack`, longest first, and restores their order.

        By default a batch has as many as fill a budget of positions, padding included.
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
        """Returns the predictions for texts or pairs, and whether each was truncated."""
        x = self.read(x)
        texts = self.read_inputs(x)
        if texts is None:
            raise no_texts(x)
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
        """Returns batches of `columns`: texts, targets as numbers, and weights if there are any.

        By default each has as many texts as fill a budget of positions.
        """
        texts, targets, *weights = columns
        if not len(texts):
            raise ValueError("`x` must hold at least one text. Received: none")
        if batch_size is None and batch_tokens is None:
            batch_tokens = EVALUATION_TOKENS
        given = {"batch_size": batch_size, "batch_tokens": batch_tokens}
        given |= {"sample_weights": weights[0] if weights else None}
        packed = self.pack(texts.text_a, texts.text_b)
        return self.model.dataset(packed, targets, shuffle=shuffle, seed=seed, **given)

    def _columns(self, texts: TextInputs, y: Any, weight: Any = None) -> tuple[Any, ...]:
        """Returns texts, their targets as numbers, and their weights if there are any."""
        check_given(y)
        targets, weight = self._targets(y), weight_array(weight)
        check_count("y", targets, len(texts))
        if weight is None:
            return texts, targets
        check_count("sample_weight", weight, len(texts))
        return texts, targets, weight

    def _held_out(self, data: Any) -> Any:
        """Converts validation data in the forms of `fit` to a form that Keras takes."""
        if isinstance(data, tf.data.Dataset):
            return self.numbers(data)
        if not isinstance(data, tuple | list):  # which Keras takes alike
            return data
        x = self.read(data[0])
        texts = self.read_inputs(x)
        if texts is None:
            return (x, *map(self._targets, data[1:2]), *data[2:])
        return self.batches(self._columns(texts, *(data[1:] or (None,))))

    def _targets(self, y: Any) -> Any:
        """Encodes targets, as users write them, as an array of numbers, or None."""
        return None if y is None else np.asarray(self.encode_targets(as_column(listed(y))))

    def numbers(self, dataset: tf.data.Dataset) -> tf.data.Dataset:
        """Maps a dataset of batches of texts to batches of token ids, on the host."""
        spec = dataset.element_spec
        if not any(part.dtype == tf.string for part in tf.nest.flatten(spec)):
            return dataset
        x = spec[0] if isinstance(spec, tuple) else spec
        check_pair(isinstance(x, dict | tuple) and len(x) == 2, self.model.pair)

        def encode(x: Any, *rest: Any) -> Any:
            inputs = self.token_inputs(x)
            if rest and isinstance(rest[0], tf.Tensor | tf.RaggedTensor):
                rest = (self._encode_batch(rest[0]), *rest[1:])
            return (inputs, *rest) if rest else inputs

        return read_ahead(dataset.map(plain(encode), num_parallel_calls=tf.data.AUTOTUNE))

    def _encode_batch(self, targets: tf.Tensor | tf.RaggedTensor) -> tf.Tensor:
        if targets.dtype == tf.string:
            return self.encode_names(targets)
        return self.encode_numbers(targets)

    def token_inputs(self, x: Any) -> dict[str, Any]:
        """Tokenizes string tensors (B,), pairs as a tuple, list or dict of two, as graph code."""
        return model_inputs(self.preprocess(*tensors_of(x, self.dataset_forms)))

    def call_inputs(self, x: Any) -> Any:
        if isinstance(x, PackedText):  # of `preprocess`
            return model_inputs(x)
        if not self.holds_texts(x):
            return x
        if all(isinstance(one, tf.Tensor) for one in keras.tree.flatten(x)):
            check_pair(isinstance(x, dict | list | tuple) and len(x) == 2, self.model.pair)
            return self.token_inputs(x)
        texts = self.read_inputs(checked_inputs(x))
        if texts is None:
            raise no_texts(x)
        columns = (texts.text_a,) if texts.text_b is None else (texts.text_a, texts.text_b)
        return self.token_inputs([text_tensor(column) for column in columns])

    def one_batch(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
        x = self.read(x)
        texts = self.read_inputs(x)
        if texts is None:
            return x, self._targets(y), weight_array(sample_weight)
        columns = self._columns(texts, y, sample_weight)
        return next(iter(self.batches(columns, batch_size=len(texts))))


def kept_of_split(split: Any, count: int) -> int:
    """Returns how many of `count` texts train where the share `validation_split` is held out.

    Raises:
        ValueError: it is no number in [0, 1), or leaves no text on one of the sides.
    """
    is_share = isinstance(split, int | float | np.number) and 0 <= split < 1
    kept = int(count * (1.0 - float(split))) if is_share else 0
    if not 0 < kept < count:
        raise ValueError(
            "`validation_split` must be a number in [0, 1) that leaves texts to train on and to "
            f"validate on. Received: validation_split={split!r} of {count} texts"
        )
    return kept


def no_texts(x: Any) -> ValueError:
    """Returns the error for inputs `x` that cannot be read as texts or pairs."""
    held = f" of {sorted(map(str, x))}" if isinstance(x, dict) else ""
    held = f" that begins with {x[0]!r:.80}" if isinstance(x, list) and x else held
    if hasattr(x, "dtypes") and hasattr(x, "columns"):  # a table of pandas
        held = " of " + ", ".join(f"{name} ({x[name].dtype})" for name in x.columns)
    if isinstance(x, tf.data.Dataset):
        held = ", which `predict` takes"
    return ValueError(f"`x` must be texts or pairs of texts. Received: {type(x).__name__}{held}")
