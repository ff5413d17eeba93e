"""The base class of encoders: checkpoints, and the stack of blocks that most of them have.

Shapes: B batch, T length, R real tokens of a batch, D hidden, N heads.
"""

import inspect
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import keras

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.tokenizer_files import byte_level_files, find_vocabulary
from kbert.checkpoints.read_checkpoint import WRITERS, read_checkpoint, write_checkpoint
from kbert.layers.embeddings import BertEmbeddings
from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.linear import Linear
from kbert.layers.masks import (
    UnpaddedTokens,
    last_real_state,
    sequence_attention_mask,
    unpadded_tokens,
)
from kbert.models.encoder import check_inputs
from kbert.models.weights import NewWeights, assign_arrays, encoder_arrays, weights_follow

logger = logging.getLogger(__name__)
# Arguments that runs give to every encoder, and that one of other layers may lack.
_OF_RUNS = ("attention_dropout", "causal", "gradient_checkpointing")
_NOT_ENCODER = ("name", "trainable", "dtype", "gradient_checkpointing")
# Groups of rows in training, where batches have mixed lengths: on 16 pairs of GLUE's RTE a step
# of MiniLM takes 1.46 s with one, 1.40 with two, 1.22 with four; short sentences take 10 % more.
_TRAINING_GROUPS = 4


class EncoderModel(keras.Model):
    """Base class of encoders: reading and writing of checkpoints, and a stack of blocks.

    A subclass makes `embeddings`, blocks and `pooler`, and says in `call` what it computes; one of
    other layers has its own `hidden_states` and `attention_scores`.
    """

    architecture: str  # its name in `kbert.architectures.ENCODERS`
    causal: bool
    # From ids, segments and positions to the input of the first block, or of what `_embedded` puts
    # between.
    embeddings: Any
    pooler: Any  # layer from (B, D) to (B, D)
    gradient_checkpointing: bool  # whether blocks are recomputed in the backward pass
    initializer_range: float  # standard deviation of the truncated normal initializer

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
            ValueError: it is no checkpoint of this encoder, or weights are missing, left over or
                misshapen.
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

        Raises:
            ValueError: it is of another architecture, or weights are missing, left over or
                misshapen.
        """
        if checkpoint.architecture != cls.architecture:
            raise ValueError(
                f"`checkpoint` must be of the architecture {cls.architecture}, as {cls.__name__} "
                f"is. Received: architecture={checkpoint.architecture!r}"
            )
        for line in checkpoint.report:
            logger.info("%s", line)
        if needs_pooler and not checkpoint.has_pooler:
            logger.warning("The checkpoint has no pooler: it starts from random weights.")
        # New adapters, which a checkpoint may lack too, have their own initializer.
        with weights_follow(checkpoint.has_pooler):
            model = cls(**{**checkpoint.config, **_taken(cls, kwargs)})
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
            config.pop("causal", None)
        arrays = encoder_arrays(self)
        return Checkpoint(config=config, arrays=arrays, architecture=self.architecture)

    def save_pretrained(
        self,
        directory: str | os.PathLike[str],
        format: str = "kbert",
        vocabulary: str | os.PathLike[str] | None = None,
        lowercase: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Writes the encoder for `from_pretrained`, or for other packages; returns the directory.

        Args:
            directory: the directory to make.
            format: "kbert", "huggingface" or "tf1".
            vocabulary: a vocabulary file to put beside the weights; `vocab.json` with `merges.txt`
                beside it, or `tokenizer.json`, for a byte-level BPE.
            lowercase: whether its tokenizer lower-cases; written for readers of the directory.
            overwrite: whether an existing directory may be replaced, with all that it holds.

        Raises:
            ValueError: the format is unknown, or is not "kbert" for an encoder with adapters; or
                the vocabulary has more tokens than the encoder.
            FileExistsError: the directory exists, and may not be replaced.
        """
        checkpoint = self.to_checkpoint()
        if format not in WRITERS:
            raise ValueError(
                f"`format` must be one of {list(WRITERS)}. Received: format={format!r}"
            )
        if checkpoint.adapters and format != "kbert":
            raise ValueError(
                '`format` must be "kbert" for an encoder with adapters. '
                f"Received: format={format!r}"
            )
        if vocabulary is not None:
            path = Path(vocabulary)
            if path.suffix == ".json":
                checkpoint.tokenizer_files = byte_level_files(path.parent)
            else:
                checkpoint.vocabulary_path = path
                find_vocabulary(path.parent, self.vocabulary_size, path.name)
        checkpoint.lowercase = lowercase
        write_checkpoint(checkpoint, directory, format, overwrite)
        return Path(directory)

    @property
    def layer_blocks(self) -> Sequence[EncoderBlock]:
        """Returns the block of each layer, the first layer's first; layers may share one."""
        raise NotImplementedError(f"{type(self).__name__} must name the blocks of its layers")

    def _initializer(self) -> dict[str, Any]:
        return keras.initializers.serialize(NewWeights(stddev=self.initializer_range))

    def _embeddings(self, width: int) -> BertEmbeddings:
        return BertEmbeddings(
            self.vocabulary_size,
            width,
            self.max_sequence_length,
            self.num_segments,
            self.dropout,
            self.layer_norm_epsilon,
            self._initializer(),
            dtype=self.dtype_policy,
            name="embeddings",
        )

    def _block(self, index: int) -> EncoderBlock:
        return EncoderBlock(**self._block_arguments(index))

    def _block_arguments(self, index: int) -> dict[str, Any]:
        return {
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": self.activation,
            "epsilon": self.layer_norm_epsilon,
            "kernel_initializer": self._initializer(),
            "dtype": self.dtype_policy,
            "name": f"encoder_block_{index}",
        }

    def _linear(self, activation: str | None, name: str) -> Linear:
        given = {"kernel_initializer": self._initializer(), "dtype": self.dtype_policy}
        return Linear(self.hidden_dim, activation, **given, name=name)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        check_inputs(inputs)  # before Keras converts it to tensors or raises its own error
        return super().__call__(inputs, *args, **kwargs)

    def _outputs(self, inputs: Any, training: bool | None) -> dict[str, Any]:
        """Computes `call`."""
        padding_mask = inputs.get("padding_mask")
        if padding_mask is not None and None in padding_mask.shape:
            tokens = unpadded_tokens(padding_mask, self.causal, _TRAINING_GROUPS if training else 1)
            return self._outputs_of_tokens(inputs, tokens, training)
        mask = self._mask(inputs)
        hidden = self._embed(inputs, training)
        for block in self.layer_blocks:
            hidden = self._encode(block, hidden, mask, training)
        read = last_real_state(hidden, padding_mask) if self.causal else hidden[:, 0]
        return {"sequence_output": hidden, "pooled_output": self.pooler(read)}

    def _outputs_of_tokens(
        self, inputs: Any, tokens: UnpaddedTokens, training: bool | None
    ) -> dict[str, Any]:
        """Computes `call` for real tokens only; the states of padded positions are 0."""
        segment_ids = inputs.get("segment_ids")
        hidden = self._embedded(
            tokens.of(inputs["token_ids"]),
            None if segment_ids is None else tokens.of(segment_ids),
            tokens.positions(),
            training,
        )
        for block in self.layer_blocks:
            hidden = self._encode(block, hidden, tokens, training)
        read = tokens.last_states(hidden) if self.causal else tokens.first_states(hidden)
        return {"sequence_output": tokens.in_rows(hidden), "pooled_output": self.pooler(read)}

    def hidden_states(self, inputs: Any, training: bool | None = None) -> list[Any]:
        """Returns the embeddings and every block's output: num_layers + 1 arrays (B, T, D).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
            training: whether dropout is on.
        """
        mask = self._mask(inputs)
        states = [self._embed(inputs, training)]
        for block in self.layer_blocks:
            states.append(self._encode(block, states[-1], mask, training))
        return states

    def attention_scores(self, inputs: Any) -> list[Any]:
        """Returns every block's attention probabilities, without dropout: num_layers (B, N, T, T).

        Args:
            inputs: dict of `token_ids` int (B, T), `segment_ids` int (B, T) and `padding_mask` bool
                (B, T), of which the last two may be absent.
        """
        mask = self._mask(inputs)
        states = self.hidden_states(inputs)
        return [block.scores(state, mask) for block, state in zip(self.layer_blocks, states)]

    def _mask(self, inputs: Any) -> Any:
        check_inputs(inputs)
        return sequence_attention_mask(inputs["token_ids"], inputs.get("padding_mask"), self.causal)

    def _embed(self, inputs: Any, training: bool | None) -> Any:
        return self._embedded(inputs["token_ids"], inputs.get("segment_ids"), None, training)

    def _embedded(
        self, token_ids: Any, segment_ids: Any, positions: Any, training: bool | None
    ) -> Any:
        """Returns the input of the first block; overridden where that is not the embeddings."""
        return self.embeddings(token_ids, segment_ids, positions, training=training)

    def _encode(self, block: EncoderBlock, hidden: Any, mask: Any, training: bool | None) -> Any:
        if not (self.gradient_checkpointing and training):
            return block(hidden, attention_mask=mask, training=training)
        # The seeds are drawn outside, so that recomputation drops the same units.
        seeds = block.draw_seeds()
        recomputed = keras.remat(
            lambda x: block(x, attention_mask=mask, training=training, seeds=seeds)
        )
        return recomputed(hidden)


def _taken(kind: type, given: dict[str, Any]) -> dict[str, Any]:
    """Returns the given arguments without those of runs that the encoder's constructor lacks."""
    makers = [vars(one)["__init__"] for one in kind.__mro__ if "__init__" in vars(one)]
    known = {name for maker in makers for name in inspect.signature(maker).parameters}
    lacking = [name for name in _OF_RUNS if name in given and name not in known]
    for name in lacking:
        if given[name] is True:
            raise ValueError(f"`{name}` must be False for a {kind.__name__}. Received: {name}=True")
    return {name: value for name, value in given.items() if name not in lacking}
