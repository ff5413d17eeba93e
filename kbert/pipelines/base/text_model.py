"""Base of all Keras models on raw texts: compiling, loading and saving."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.models.encoder_task import configured
from kbert.pipelines.base.saved_pipeline import load_pipeline, save_pipeline
from kbert.pipelines.replication.replicated_model import ReplicatedModel
from kbert.text.sequences.packing import PackedText
from kbert.text.sequences.windows import WindowTokens
from kbert.text.wordpiece.wordpiece import WordPiece

Signature = tuple[Callable[..., dict[str, Any]], list[tf.TensorSpec]]


def text_specs(pair: bool) -> list[tf.TensorSpec]:
    """Returns the specs of raw strings in a signature: `text`, or `text_a`, `text_b`; each (B,)."""
    names = ("text_a", "text_b") if pair else ("text",)
    return [tf.TensorSpec((None,), tf.string, name=name) for name in names]


def question_specs() -> list[tf.TensorSpec]:
    """Returns the specs of questions with contexts: `question` and `context`, each (B,)."""
    return [tf.TensorSpec((None,), tf.string, name=name) for name in ("question", "context")]


def token_specs() -> list[tf.TensorSpec]:
    """Returns the specs of token ids in a signature: two of (B, T) and `lengths` (B,)."""
    return [
        tf.TensorSpec((None, None), tf.int32, name="token_ids"),
        tf.TensorSpec((None, None), tf.int32, name="segment_ids"),
        tf.TensorSpec((None,), tf.int32, name="lengths"),
    ]


def token_inputs(token_ids: Any, segment_ids: Any, lengths: Any) -> dict[str, Any]:
    """Returns the inputs of `Bert` for token ids (B, T) with lengths (B,).

    The mask is derived: a server that pads a batch of requests repeats values of a row, and the
    positions that it appends must be masked.
    """
    real = tf.range(tf.shape(token_ids)[1]) < lengths[:, None]
    return {"token_ids": token_ids, "segment_ids": segment_ids, "padding_mask": real}


def model_inputs(packed: PackedText | WindowTokens) -> dict[str, Any]:
    """Returns the encoder's inputs from packed text, or from windows of it."""
    return {
        "token_ids": packed.token_ids,
        "segment_ids": packed.segment_ids,
        "padding_mask": packed.padding_mask,
    }


class TextModel(ReplicatedModel):
    """A task's model with the `tokenizer` of its encoder."""

    tokenizer: WordPiece
    max_sequence_length: int
    # The class of transformers with the same head; None where there is none.
    huggingface_architecture: str | None = None
    formats: tuple[str, ...] = ("kbert", "huggingface")
    default_sequence_length = 128
    # Whether a checkpoint without a pooler is incomplete.
    needs_pooler = True
    # Prefixes of the head's tensor names in Hugging Face's format.
    head_names: tuple[str, ...] = ("classifier.", "hidden.", "qa_outputs.")
    # Whether layers of the head may be new while others come from a checkpoint.
    head_may_be_partial = False
    # Arguments of the tokenizer that the task requires, whatever was saved.
    tokenizer_rules: dict[str, Any] = {}

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str], **kwargs: Any) -> Any:
        """Loads a saved model, or puts a new head on an encoder.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a checkpoint; one with a
                head of this task (kbert's or Hugging Face's) yields a model that is ready to use.
            **kwargs: arguments of the constructor, or of `Bert`; or `from_other_task=True`, to take
                the encoder of another task's model, with a new head.

        Raises:
            ValueError: the model is of another task, or its head does not fit.
        """
        return load_pipeline(cls, name_or_directory, **kwargs)

    @classmethod
    def default_lengths(cls, positions: int) -> dict[str, int]:
        """Returns arguments of the constructor that differ from its defaults for a short encoder.

        Args:
            positions: the most tokens that the encoder takes.
        """
        return {"max_sequence_length": min(cls.default_sequence_length, positions)}

    @classmethod
    def default_settings(cls, checkpoint: Checkpoint) -> dict[str, Any]:
        """Returns arguments of the constructor that follow from a checkpoint's contents.

        Args:
            checkpoint: the checkpoint that the model is loaded from.
        """
        return {}

    @classmethod
    def huggingface_architectures(cls) -> tuple[str, ...]:
        """Returns the classes of transformers whose heads can be loaded."""
        own = cls.huggingface_architecture
        return () if own is None else (own,)

    def save_pretrained(
        self,
        directory: str | os.PathLike[str],
        format: str = "kbert",
        overwrite: bool = False,
    ) -> Path:
        """Writes weights, vocabulary and names of labels for `from_pretrained`.

        Args:
            directory: the directory to create.
            format: one of the class's `formats`.
            overwrite: whether an existing directory may be replaced, with all that it holds.

        Returns:
            The directory.

        Raises:
            ValueError: the format is unknown or cannot hold the model.
            FileExistsError: the directory exists, and may not be replaced.
        """
        return save_pipeline(self, directory, format, overwrite)

    def compile(self, *args: Any, jit_compile: Any = False, **kwargs: Any) -> None:
        """Prepares the model for training, without XLA, which would recompile for each length.

        Args:
            *args: optimizer, loss and metrics, each the task's own where it is None or left out.
            jit_compile: True for XLA; worthwhile only where all batches have one shape.
            **kwargs: the same by name, and further arguments of Keras' `compile`.
        """
        super().compile(*args, jit_compile=jit_compile, **kwargs)

    def get_config(self) -> dict[str, Any]:
        tokenizer = keras.saving.serialize_keras_object(self.tokenizer)
        return {**super().get_config(), "tokenizer": tokenizer}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Makes the model of a configuration from `get_config`."""
        with configured(cls):
            tokenizer = keras.saving.deserialize_keras_object(config["tokenizer"])
            return super().from_config({**config, "tokenizer": tokenizer})


def label_maps(names: tuple[str, ...]) -> dict[str, Any]:
    """Returns the label maps of a Hugging Face configuration for C classes.

    Args:
        names: the C class names.
    """
    return {
        "id2label": {str(i): name for i, name in enumerate(names)},
        "label2id": {name: i for i, name in enumerate(names)},
    }


def check_vocabulary(tokenizer: WordPiece, encoder: Any) -> None:
    """Raises a ValueError if the tokenizer has ids that the encoder has no embeddings for."""
    if len(tokenizer.vocabulary) > encoder.vocabulary_size:
        raise ValueError(
            "`tokenizer` must not have more tokens than the encoder has embeddings. Received: "
            f"{len(tokenizer.vocabulary)} tokens, {encoder.vocabulary_size} embeddings"
        )
