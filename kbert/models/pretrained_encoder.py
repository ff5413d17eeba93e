"""Encoders that are loaded from checkpoints and written for other packages."""

import logging
import os
from pathlib import Path
from typing import Any, Self

import keras

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.huggingface.files import write_huggingface
from kbert.checkpoints.native.encoder_folder import write_native
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.checkpoints.tensorflow.tf1_bert import write_tf1_bert
from kbert.models.encoder_arrays import assign_arrays, encoder_arrays
from kbert.models.new_weights import weights_follow

logger = logging.getLogger(__name__)
_WRITERS = {"kbert": write_native, "huggingface": write_huggingface, "tf1": write_tf1_bert}
_NOT_ENCODER = ("name", "trainable", "dtype", "gradient_checkpointing")


class PretrainedEncoder(keras.Model):
    """Base class of BERT encoders: reading and writing of checkpoints."""

    causal: bool

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str], **kwargs: Any) -> Self:
        """Loads a published encoder or one from a directory.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a Hugging Face, TF1 BERT,
                Model Garden or kbert checkpoint; the format is detected.
            **kwargs: arguments of the constructor that replace the checkpoint's, such as `dropout`,
                `dtype` or `gradient_checkpointing`.

        Raises:
            ValueError: it is no BERT checkpoint, or weights are missing, left over or misshapen.
            FileNotFoundError: the directory or name does not exist.
        """
        return cls.from_checkpoint(read_checkpoint(name_or_directory), **kwargs)

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, *, needs_pooler: bool = True, **kwargs: Any
    ) -> Self:
        """Makes the encoder of a checkpoint that was read.

        Args:
            checkpoint: a checkpoint from `kbert.checkpoints.read_checkpoint`.
            needs_pooler: whether to warn if the checkpoint has no pooler.
            **kwargs: arguments of the constructor that replace the checkpoint's.
        """
        for line in checkpoint.report:
            logger.info("%s", line)
        if needs_pooler and not checkpoint.has_pooler:
            logger.warning("The checkpoint has no pooler: it starts from random weights.")
        # New adapters, which a checkpoint may lack too, have their own initializer.
        with weights_follow(checkpoint.has_pooler):
            model = cls(**{**checkpoint.config, **kwargs})
        # A plain encoder cannot hold adapters: an error, not different results.
        assign_arrays(model, checkpoint.arrays | checkpoint.adapters, cls.may_be_absent)
        return model

    @staticmethod
    def may_be_absent(name: str) -> bool:
        """Returns whether a checkpoint may lack a weight, which is then randomly initialized.

        Args:
            name: the path of the weight without the model's name, such as `pooler/kernel`.
        """
        return name.startswith("pooler/")

    def to_checkpoint(self) -> Checkpoint:
        """Returns the weights as named arrays (float32 for a mixed policy), with the config."""
        config = {k: v for k, v in self.get_config().items() if k not in _NOT_ENCODER}
        if not self.causal:  # as folders were written before there was a choice
            del config["causal"]
        return Checkpoint(config=config, arrays=encoder_arrays(self))

    def save_pretrained(
        self,
        directory: str | os.PathLike[str],
        format: str = "kbert",
        vocabulary: str | os.PathLike[str] | None = None,
        lowercase: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Writes the encoder for `from_pretrained`, or for other packages.

        Args:
            directory: the directory to make.
            format: "kbert", "huggingface" or "tf1".
            vocabulary: a vocabulary file to put beside the weights.
            lowercase: whether its tokenizer lower-cases; written for readers of the directory.
            overwrite: whether an existing directory may be replaced, with all that it holds.

        Returns:
            The directory.

        Raises:
            ValueError: the format is unknown, or is not "kbert" for an encoder with adapters.
            FileExistsError: the directory exists, and may not be replaced.
        """
        checkpoint = self.to_checkpoint()
        if format not in _WRITERS:
            raise ValueError(
                f"`format` must be one of {list(_WRITERS)}. Received: format={format!r}"
            )
        if checkpoint.adapters and format != "kbert":
            raise ValueError(
                '`format` must be "kbert" for an encoder with adapters. '
                f"Received: format={format!r}"
            )
        checkpoint.vocabulary_path = None if vocabulary is None else Path(vocabulary)
        checkpoint.lowercase = lowercase
        _WRITERS[format](checkpoint, directory, overwrite=overwrite)
        return Path(directory)
