"""Multiple choice: a context and K choices in, the best choice out (SWAG)."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import ops

from kbert.models.bert import Bert
from kbert.pipelines.raw_text_model import RawTextModel, model_inputs
from kbert.pipelines.saved_pipeline import load_pipeline, save_pipeline
from kbert.pipelines.signatures import Signature
from kbert.tasks.multiple_choice import ChoiceSelection
from kbert.text.packing import PackedText
from kbert.text.wordpiece import WordPiece

_ROWS = 16


@keras.saving.register_keras_serializable("kbert")
class MultipleChoice(RawTextModel, ChoiceSelection):
    """Chooses the best of K continuations of a context.

    `x` in `fit`, `evaluate` and `predict` is a pair (contexts, choices): n str, and n lists of K
    str, the same K for all. `y` is the index of the right choice.

    Args:
        encoder: a `Bert`.
        tokenizer: the tokenizer of the encoder's vocabulary.
        max_sequence_length: context and choice together are cut to it, in tokens.
        head: "pooler" or "two_layer", see `kbert.tasks.classification.SequenceHead`.
        dropout: rate of the head's dropout.

    Raises:
        ValueError: tokenizer or length do not fit the encoder.
    """

    huggingface_architecture = "BertForMultipleChoice"
    pair = True

    def __init__(
        self,
        encoder: Bert,
        tokenizer: WordPiece,
        max_sequence_length: int = 128,
        head: str = "pooler",
        dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "multiple_choice")
        super().__init__(encoder, head, dropout, **kwargs)
        self.tokenizer = tokenizer
        self.max_sequence_length = max_sequence_length
        self.check_tokenizer()

    @classmethod
    def from_pretrained(
        cls, name_or_directory: str | os.PathLike[str], **kwargs: Any
    ) -> "MultipleChoice":
        """Loads a saved model, or puts a new head on an encoder; see `Regressor`."""
        return load_pipeline(cls, name_or_directory, **kwargs)

    def save_pretrained(self, directory: str | os.PathLike[str], format: str = "kbert") -> Path:
        """Writes weights and vocabulary; see `Classifier.save_pretrained`."""
        return save_pipeline(self, directory, format)

    def huggingface_config(self) -> dict[str, Any]:
        """What a Hugging Face configuration says of the task."""
        return {"classifier_dropout": self.dropout}

    def preprocess(self, text_a: Any, text_b: Any = None) -> PackedText:
        """Contexts (B,) and choices (B, K) to token ids (B, K, T), as graph code."""
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
        """Keras' `fit` on (contexts, choices) and indices, or on what Keras' `fit` takes."""
        if batch_tokens is not None:
            raise ValueError(
                "`batch_tokens` must be None for multiple choice, whose rows hold several texts. "
                f"Received: batch_tokens={batch_tokens}"
            )
        if isinstance(validation_data, tuple) and _is_raw(validation_data[0]):
            validation_data = self.choice_dataset(*validation_data)
        if _is_raw(x):
            x = self.choice_dataset(x, y, batch_size or _ROWS, shuffle, seed)
            return super().fit(x, validation_data=validation_data, **kwargs)
        return super().fit(
            x,
            y,
            batch_size,
            validation_data=validation_data,
            shuffle=shuffle,
            sample_weight=sample_weight,
            **kwargs,
        )

    def evaluate(
        self, x: Any = None, y: Any = None, sample_weight: Any = None, **kwargs: Any
    ) -> Any:
        """Keras' `evaluate`; the arguments are those of `fit`."""
        if not _is_raw(x):
            return super().evaluate(x, y, sample_weight, **kwargs)
        return super().evaluate(self.choice_dataset(x, y), **kwargs)

    def predict(self, x: Any, verbose: Any = 0, **kwargs: Any) -> Any:
        """Probabilities (n, K) of the choices, in the order of `x`."""
        if not _is_raw(x):
            return super().predict(x, verbose=verbose, **kwargs)
        if not len(x[0]):
            return np.zeros((0, 0), "float32")
        return super().predict(self.choice_dataset(x), verbose=verbose, **kwargs)

    def choice_dataset(
        self,
        x: tuple[Sequence[str], Sequence[Sequence[str]]],
        y: Any = None,
        batch_size: int = _ROWS,
        shuffle: bool = False,
        seed: int = 0,
    ) -> tf.data.Dataset:
        """Batches of token ids (B, K, T), with indices (B,) if `y` is given.

        Raises:
            ValueError: the rows do not all have the same number of choices, or an index is out of
                range.
        """
        contexts, choices = list(x[0]), [list(row) for row in x[1]]
        check_choices(contexts, choices, y)
        columns: tuple[Any, ...] = (tf.constant(contexts), tf.constant(choices))
        if y is not None:
            columns += (tf.constant(np.asarray(y, "int32")),)
        dataset = tf.data.Dataset.from_tensor_slices(columns)
        if shuffle:
            dataset = dataset.shuffle(len(contexts), seed=seed)

        def encode(context: Any, choice: Any, *targets: Any) -> Any:
            inputs = model_inputs(self.preprocess(context, choice))
            return (inputs, *targets) if targets else inputs

        dataset = dataset.batch(batch_size).map(encode, num_parallel_calls=tf.data.AUTOTUNE)
        return dataset.prefetch(tf.data.AUTOTUNE)

    def predict_step(self, data: Any) -> Any:
        """Probabilities (B, K) of one batch."""
        return self.scores(keras.utils.unpack_x_y_sample_weight(data)[0])

    def scores(self, inputs: dict[str, Any]) -> Any:
        """Probabilities float32 (B, K) for token ids (B, K, T), as graph code."""
        return ops.softmax(self(inputs, training=False), axis=-1)

    def choose(self, context: Any, choices: Any) -> dict[str, Any]:
        """Contexts (B,) and choices (B, K) to the answers, as graph code.

        Returns:
            `choice` int32 (B,), `score` (B,), `scores` (B, K), `truncated` bool (B,).
        """
        packed = self.preprocess(context, choices)
        scores = self.scores(model_inputs(packed))
        return {
            "choice": tf.argmax(scores, axis=-1, output_type=tf.int32),
            "score": tf.reduce_max(scores, axis=-1),
            "scores": scores,
            "truncated": tf.reduce_any(packed.truncated, axis=-1),
        }

    def signatures(self) -> dict[str, Signature]:
        """The function of an export and the specs of its inputs."""
        specs = [
            tf.TensorSpec((None,), tf.string, name="context"),
            tf.TensorSpec((None, None), tf.string, name="choices"),
        ]
        return {"serving_default": (self.choose, specs)}

    def answers(self, x: Any) -> list[dict[str, Any]]:
        """A dict with `choice`, `score` and `scores` for each row of `x`."""
        return [
            {"choice": int(np.argmax(r)), "score": float(np.max(r)), "scores": r.tolist()}
            for r in self.predict(x)
        ]

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "tokenizer": keras.saving.serialize_keras_object(self.tokenizer),
            "max_sequence_length": self.max_sequence_length,
        }

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "MultipleChoice":
        """Makes the model of a configuration from `get_config`."""
        tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
        return super().from_config({**config, "tokenizer": tokenizer})


def check_choices(contexts: Sequence[str], choices: Sequence[Sequence[str]], y: Any) -> None:
    """Raises a ValueError unless every context has the same number of choices and a valid index."""
    if len(contexts) != len(choices):
        raise ValueError(
            "`x` must hold one list of choices a context. Received: "
            f"{len(contexts)} contexts and {len(choices)} lists"
        )
    counts = sorted({len(row) for row in choices})
    if len(counts) > 1 or counts == [0]:
        raise ValueError(f"all rows must have the same number of choices. Received: {counts}")
    if y is not None and len(y) != len(contexts):
        raise ValueError(f"`y` must have {len(contexts)} indices. Received: {len(y)}")
    if y is not None and any(not 0 <= int(i) < counts[0] for i in y):
        raise ValueError(f"`y` must hold indices in [0, {counts[0]}). Received: {sorted(set(y))}")


def _is_raw(x: Any) -> bool:
    return (
        isinstance(x, tuple)
        and len(x) == 2
        and isinstance(x[0], Sequence)
        and all(isinstance(text, str) for text in x[0])
        and all(isinstance(row, Sequence) and not isinstance(row, str) for row in x[1])
    )
