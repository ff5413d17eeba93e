"""Batches of a model's raw texts: what all forms share, for texts of several examples each."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.batches.dataset import batched_dataset, with_epoch_counter
from kbert.data.batches.mixtures import Columns
from kbert.models.encoder import id_arrays
from kbert.pipelines.frozen_states import frozen_encoder, frozen_states
from kbert.pipelines.replication import Replication
from kbert.pipelines.text_inputs import checked_inputs

# Positions (padding included) of a batch in evaluation and prediction.
EVALUATION_TOKENS = 4096
# Parts of a run, such as training and validation, whose kept states are found once.
_KNOWN = 4


class Batching:
    """Makes batches of numbers of the raw texts that a `TaskModel` is given; the model holds it.

    A subclass implements `text_batches` and `predict`, and what else differs.
    """

    # Examples a batch in `fit`, by default.
    training_rows = 32
    # Whether `batch_size` applies to raw texts in evaluation.
    is_cut_by_rows = True
    # All texts at once, for `one_batch`.
    whole: dict[str, Any] = {"batch_size": 1 << 30}

    def __init__(self, model: Any) -> None:
        self.model = model
        self.replication = Replication(model)
        self._known: list[tuple[Any, tuple[str, str], Any]] = []

    @staticmethod
    def default_lengths(model_class: Any, positions: int) -> dict[str, int]:
        """Returns arguments of the constructor for an encoder that takes `positions` tokens."""
        return {"max_sequence_length": min(model_class.default_sequence_length, positions)}

    @staticmethod
    def holds_texts(x: Any) -> bool:
        """Returns whether the input of a call holds texts; consumes nothing of it."""
        return holds_texts(x)

    def text_batches(self, x: Any, y: Any = None, **cut: Any) -> Any:
        """Returns a dataset of batches of raw texts, or None if `x` is something else.

        `cut` are batching options of `fit`; by default, batches are as large as evaluation allows.
        """
        # A subclass without it is a bug, raised at its first use.
        raise NotImplementedError(f"{type(self).__name__} must say what its texts are")

    def predict(self, x: Any, **kwargs: Any) -> Any:
        """Predicts raw texts, or anything else by `predict_numbers` of the model."""
        raise NotImplementedError(f"{type(self).__name__} must say what its predictions are")

    def training_examples(self, x: Any, y: Any) -> tuple[Any, Any]:
        """Tokenizes raw texts with their targets, for `dataset`.

        Raises:
            ValueError: `x` is something else, or the targets do not fit.
        """
        # Pairs, choices and images are no rows that could stand in one batch with others.
        raise NotImplementedError(f"{type(self).__name__} must say what its examples are")

    def as_columns(self, packed: Any, targets: Any) -> Columns:
        """Returns examples from `pack` or `examples`, and their targets, as arrays."""
        return Columns(packed, targets)

    def dataset(self, packed: Any, targets: Any = None, **kwargs: Any) -> tf.data.Dataset:
        """Returns length-bucketed batches; see `TaskModel.dataset`."""
        found = self.as_columns(packed, targets)
        known = self.known_states(found.packed)
        of_tokens = {"token_labels": found.token_labels} | known
        return batched_dataset(found.packed, found.labels, **of_tokens, **kwargs)

    def known_states(self, packed: Any) -> dict[str, Any]:
        """Returns the states of examples, where those of a frozen encoder are kept in a folder."""
        encoder = self.model.encoder
        folder = getattr(encoder, "feature_cache", None)
        if folder is None or not len(packed):
            return {}
        made_by = (os.fspath(folder), frozen_encoder(encoder).fingerprint)
        for known, by, states in self._known:
            if known is packed and by == made_by:
                return {"states": states}
        states = frozen_states(encoder, packed, folder)[0]
        self._known = [*self._known[1 - _KNOWN :], (packed, made_by, states)]
        return {"states": states}

    def training_cut(self, batch_size: int | None, batch_tokens: int | None) -> dict[str, Any]:
        """Returns the options of `text_batches` for `fit`'s sizes of a batch."""
        if batch_size is None and batch_tokens is None:
            batch_size = self.training_rows
        return {"batch_size": batch_size, "batch_tokens": batch_tokens}

    def read(self, x: Any, batch_size: int | None = None) -> Any:
        """Reads `x` of a method of the model as a list of texts, or arrays of checked token ids.

        Raises:
            ValueError: `x` is neither, or `batch_size` no size.
        """
        x = checked_inputs(x, batch_size)
        if isinstance(x, dict) and "token_ids" in x and not holds_texts(x["token_ids"]):
            return id_arrays(x, self.model.encoder)
        return x

    def encode_class_weight(self, weights: Any) -> Any:
        """Encodes a dict from class, as users write them, to weight by class id; None stays.

        Here any are refused: Keras looks weights up by the one class of an example.

        Raises:
            ValueError: there are any.
        """
        if weights is not None:
            raise ValueError(
                f"`class_weight` must be None for the {type(self.model).__name__}, whose examples "
                "do not have one class each; a loss of your own can weigh. "
                f"Received: {weights!r:.80}"
            )

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
        """Returns the arguments of Keras' `fit` for those of `TaskModel.fit`."""
        x = self.read(x, batch_size)
        if isinstance(validation_data, tuple | list):  # which Keras takes alike
            validation_data = self._held_out(validation_data)
        cut = self.training_cut(batch_size, batch_tokens)
        dataset = self.text_batches(x, y, **cut, shuffle=shuffle, seed=seed)
        if dataset is None:
            check_no_budget(batch_tokens)
        else:
            check_no_weights(sample_weight)
            split = kwargs.pop("validation_split", None)
            if split and validation_data is None:
                raise ValueError(
                    "`validation_split` must be left out for texts of the "
                    f"{type(self.model).__name__}: give `validation_data`. "
                    f"Received: validation_split={split!r}"
                )
        data = x if dataset is None else dataset
        callbacks = with_epoch_counter(data, kwargs.get("callbacks"))
        kwargs |= {"x": data, "validation_data": validation_data, "callbacks": callbacks}
        kwargs["class_weight"] = self.encode_class_weight(kwargs.get("class_weight"))
        if dataset is not None:
            return {**kwargs, "shuffle": False}
        kwargs |= {"y": y, "batch_size": batch_size, "sample_weight": sample_weight}
        is_dataset = isinstance(x, tf.data.Dataset)  # has an order of its own
        return {**kwargs, "shuffle": shuffle and not is_dataset}

    def evaluate_arguments(
        self, x: Any, y: Any, batch_size: int | None, sample_weight: Any
    ) -> dict[str, Any]:
        """Returns the arguments of Keras' `evaluate` for those of `TaskModel.evaluate`."""
        x = self.read(x, batch_size)
        cut = {"batch_size": batch_size} if batch_size and self.is_cut_by_rows else {}
        dataset = self.text_batches(x, y, **cut)
        if dataset is None:
            return {"x": x, "y": y, "batch_size": batch_size, "sample_weight": sample_weight}
        check_no_weights(sample_weight)
        return {"x": dataset}

    def _held_out(self, data: Sequence[Any]) -> Any:
        """Converts validation data to a form that Keras takes."""
        x = self.read(data[0])
        dataset = self.text_batches(x, *data[1:2])
        if dataset is None:
            return (x, *data[1:])
        if len(data) > 2:
            raise ValueError(
                "`validation_data` of texts must be (x, y). "
                f"Received: {len(data)} entries; such texts have no sample weights"
            )
        return dataset

    def one_batch(self, x: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Makes one batch of texts: inputs, targets, and weights if there are any.

        What is no text stays as it is.
        """
        x = self.read(x)
        dataset = self.text_batches(x, y, **self.whole)
        if dataset is None:
            return x, y, sample_weight
        check_no_weights(sample_weight)
        return next(iter(dataset))

    def call_inputs(self, x: Any) -> Any:
        """Returns the input of a call of the model: token ids as they are, texts tokenized.

        Here texts are an error: one may become several sequences, or need a target with it.
        """
        if not holds_texts(x):
            return x
        raise ValueError(
            f"`inputs` of a call must be token ids for the {type(self.model).__name__}. Received: "
            "texts, which `predict` and `answers` take"
        )


def holds_texts(x: Any) -> bool:
    """Returns whether the input of a model's call holds texts; consumes nothing of it."""
    if isinstance(x, dict):
        return any(map(holds_texts, x.values()))
    if hasattr(x, "iloc"):  # a table or a column of pandas
        return bool(holds_texts(x.to_numpy()))
    if isinstance(x, np.ndarray | tf.Tensor):
        return x.dtype == tf.string if tf.is_tensor(x) else x.dtype.kind in "OUS"
    if isinstance(x, Sequence) and not isinstance(x, str | bytes):
        return any(map(holds_texts, x))
    return isinstance(x, str | bytes)


def check_no_budget(batch_tokens: int | None) -> None:
    """Raises a ValueError for a budget of positions where the batches are not made here."""
    if batch_tokens is not None:
        raise ValueError(
            "`batch_tokens` must be None for token ids and datasets. "
            f"Received: batch_tokens={batch_tokens}"
        )


def check_vocabulary(tokenizer: Any, encoder: Any) -> None:
    """Raises a ValueError if the tokenizer has ids that the encoder has no embeddings for."""
    if len(tokenizer.vocabulary) > encoder.vocabulary_size:
        raise ValueError(
            "`tokenizer` must not have more tokens than the encoder has embeddings. Received: "
            f"{len(tokenizer.vocabulary)} tokens, {encoder.vocabulary_size} embeddings"
        )


def check_length(model: Any, least: int = 1) -> None:
    """Raises a ValueError unless a model's length is a whole number that the encoder can take."""
    length, positions = model.max_sequence_length, model.encoder.max_sequence_length
    if not isinstance(length, int | np.integer) or not least <= length <= positions:
        raise ValueError(
            f"`max_sequence_length` must be a whole number in [{least}, {positions}], the "
            f"encoder's positions. Received: max_sequence_length={length!r}"
        )


def check_no_weights(sample_weight: Any) -> None:
    """Raises a ValueError if texts that become several sequences, or pairs, are given weights."""
    if sample_weight is not None:
        raise ValueError(
            "`sample_weight` must be None with texts of this task, which have no weights. "
            f"Received: {len(sample_weight)} weights"
        )


def check_given(y: Any) -> None:
    """Raises a ValueError if there are no targets."""
    if y is None:
        raise ValueError(
            "`y` must be given with texts. Received: y=None (of a table, give a column)"
        )


def check_targets(count: int, y: Any) -> None:
    """Raises a ValueError unless there are texts, `count` of them, and a target for each."""
    check_given(y)
    check_count("y", y, count)
    if not count:
        raise ValueError("`x` must hold at least one text. Received: none")


def check_count(name: str, column: Any, count: int) -> None:
    """Raises a ValueError unless a column has an entry for each of `count` texts."""
    if len(column) != count:
        raise ValueError(
            f"`{name}` must have one entry a text. Received: {len(column)} for {count} texts"
        )
