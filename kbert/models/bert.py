"""BERT, the bidirectional Transformer encoder (Devlin et al. 2019).

Shapes: B batch, T length, D hidden, N heads, V vocabulary.
"""

import logging
import os
from pathlib import Path
from typing import Any

import keras

from kbert.checkpoints.checkpoint import Checkpoint
from kbert.checkpoints.huggingface import write_huggingface
from kbert.checkpoints.native import write_native
from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.checkpoints.tf1_bert import write_tf1_bert
from kbert.layers.bert_embeddings import BertEmbeddings
from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.linear import Linear
from kbert.layers.masks import last_real_state, sequence_attention_mask
from kbert.models.encoder_arrays import assign_arrays, encoder_arrays
from kbert.models.sizes import bert_size

logger = logging.getLogger(__name__)
_WRITERS = {"kbert": write_native, "huggingface": write_huggingface, "tf1": write_tf1_bert}
_NOT_ENCODER = ("name", "trainable", "dtype", "gradient_checkpointing")


@keras.saving.register_keras_serializable("kbert")
class Bert(keras.Model):
    """Embeddings, a stack of encoder blocks, and a pooler on the first position.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        num_layers: encoder blocks.
        num_heads: attention heads a block; must divide `hidden_dim`.
        intermediate_dim: width of the feed-forward networks.
        max_sequence_length: the longest sequence, in tokens.
        num_segments: kinds of segments.
        dropout: rate of the dropout on embeddings and sublayers.
        attention_dropout: rate of the dropout on attention probabilities.
        activation: of the feed-forward networks; BERT's is the exact GELU.
        layer_norm_epsilon: added to the variance in every LayerNorm.
        initializer_range: standard deviation of the truncated normal that new weights come from.
        gradient_checkpointing: keep only each block's input for the backward pass and compute the
            block again there; less memory, about a third more time, the same gradients.
        causal: whether each position sees itself and what came before alone. [CLS] would then sum
            up nothing: the pooler reads the last real token instead of the first.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`, or `num_layers` is negative.
    """

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        gradient_checkpointing: bool = False,
        causal: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "bert")
        super().__init__(**kwargs)
        if num_layers < 0:
            raise ValueError(
                f"`num_layers` must not be negative. Received: num_layers={num_layers}"
            )
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_layers, self.num_heads = num_layers, num_heads
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length, self.num_segments = max_sequence_length, num_segments
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.layer_norm_epsilon = activation, layer_norm_epsilon
        self.initializer_range = initializer_range
        self.gradient_checkpointing, self.causal = gradient_checkpointing, causal
        self.embeddings = BertEmbeddings(
            vocabulary_size,
            hidden_dim,
            max_sequence_length,
            num_segments,
            dropout,
            layer_norm_epsilon,
            self._initializer(),
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.blocks = [self._block(index) for index in range(num_layers)]
        self.pooler = Linear(
            hidden_dim, "tanh", True, self._initializer(), dtype=self.dtype_policy, name="pooler"
        )
        self.build()

    def _initializer(self) -> dict[str, Any]:
        return keras.initializers.serialize(
            keras.initializers.TruncatedNormal(stddev=self.initializer_range)
        )

    def _block(self, index: int) -> EncoderBlock:
        return EncoderBlock(
            self.num_heads,
            self.intermediate_dim,
            self.dropout,
            self.attention_dropout,
            self.activation,
            "post",
            self.layer_norm_epsilon,
            self._initializer(),
            dtype=self.dtype_policy,
            name=f"encoder_block_{index}",
        )

    @classmethod
    def from_size(cls, size: str, vocabulary_size: int = 30522, **kwargs: Any) -> "Bert":
        """A randomly initialised BERT of a published size.

        Args:
            size: "tiny", "mini", "small", "medium", "base" or "large".
            vocabulary_size: V.
            **kwargs: further arguments of the constructor.
        """
        return cls(vocabulary_size, **{**bert_size(size), **kwargs})

    @classmethod
    def from_pretrained(cls, name_or_directory: str | os.PathLike[str], **kwargs: Any) -> "Bert":
        """Loads a published encoder or one from a directory.

        Args:
            name_or_directory: a known name ("bert-base-uncased", "all-MiniLM-L6-v2", ...), an
                `org/name` of the Hugging Face hub, or a directory with a Hugging Face, TF1 BERT,
                Model Garden or kbert checkpoint; what it is, is found by looking.
            **kwargs: arguments of the constructor that replace the checkpoint's, such as `dropout`,
                `dtype` or `gradient_checkpointing`.

        Raises:
            ValueError: it is no BERT checkpoint, or weights are missing, left over or misshapen.
            FileNotFoundError: there is no such directory or name.
        """
        return cls.from_checkpoint(read_checkpoint(name_or_directory), **kwargs)

    @classmethod
    def from_checkpoint(
        cls, checkpoint: Checkpoint, *, needs_pooler: bool = True, **kwargs: Any
    ) -> "Bert":
        """As `from_pretrained`; without `needs_pooler`, none is no reason for a warning."""
        for line in checkpoint.report:
            logger.info("%s", line)
        if needs_pooler and not checkpoint.has_pooler:
            logger.warning("The checkpoint has no pooler: it starts from random weights.")
        model = cls(**{**checkpoint.config, **kwargs})
        # A plain encoder has no place for adapters: an error, not other numbers.
        assign_arrays(model, checkpoint.arrays | checkpoint.adapters, cls.may_be_absent)
        return model

    @staticmethod
    def may_be_absent(name: str) -> bool:
        """Tells whether a checkpoint may lack a weight, which then starts from random values.

        Args:
            name: as in `Checkpoint.arrays`.
        """
        return name.startswith("pooler/")

    def to_checkpoint(self) -> Checkpoint:
        """The weights as named arrays (float32 ones for a mixed policy), with the configuration."""
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
    ) -> Path:
        """Writes the encoder for `from_pretrained`, or for other packages.

        Args:
            directory: the directory to make; must not exist.
            format: "kbert", "huggingface" or "tf1".
            vocabulary: a vocabulary file to put beside the weights.
            lowercase: whether its tokenizer lower-cases; told to those who read the directory.

        Returns:
            The directory.

        Raises:
            ValueError: the format is unknown.
            FileExistsError: the directory is there.
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
        _WRITERS[format](checkpoint, directory)
        return Path(directory)

    def build(self, input_shape: Any = None) -> None:
        """Creates all weights; their shapes do not depend on the input."""
        if getattr(self, "built", False):
            return
        sequence = (None, None, self.hidden_dim)
        self.embeddings.build()
        for block in self.blocks:
            block.build(sequence)
        self.pooler.build((None, self.hidden_dim))
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Encodes a batch.

        Args:
            inputs: dict of `token_ids` int (B, T); `segment_ids` int (B, T), absent where all are
                0; `padding_mask` bool (B, T), True for a real token, absent where all are real.
            training: whether dropout is on.

        Returns:
            `sequence_output` (B, T, D) and `pooled_output` (B, D).
        """
        mask = self._mask(inputs)
        hidden = self._embed(inputs, training)
        for block in self.blocks:
            hidden = self._encode(block, hidden, mask, training)
        read = last_real_state(hidden, inputs.get("padding_mask")) if self.causal else hidden[:, 0]
        return {"sequence_output": hidden, "pooled_output": self.pooler(read)}

    def hidden_states(self, inputs: Any, training: bool | None = None) -> list[Any]:
        """The embeddings and the output of every block: num_layers + 1 arrays (B, T, D).

        The arguments are those of `call`.
        """
        mask = self._mask(inputs)
        states = [self._embed(inputs, training)]
        for block in self.blocks:
            states.append(self._encode(block, states[-1], mask, training))
        return states

    def attention_scores(self, inputs: Any) -> list[Any]:
        """The attention probabilities of every block: num_layers arrays (B, N, T, T).

        The argument is that of `call`; dropout is off.
        """
        mask = self._mask(inputs)
        states = self.hidden_states(inputs)
        return [block.scores(state, mask) for block, state in zip(self.blocks, states)]

    def _mask(self, inputs: Any) -> Any:
        padding_mask = inputs.get("padding_mask")
        return sequence_attention_mask(inputs["token_ids"], padding_mask, self.causal)

    def _embed(self, inputs: Any, training: bool | None) -> Any:
        return self.embeddings(inputs["token_ids"], inputs.get("segment_ids"), training=training)

    def _encode(self, block: EncoderBlock, hidden: Any, mask: Any, training: bool | None) -> Any:
        if not (self.gradient_checkpointing and training):
            return block(hidden, mask, training=training)
        # The seeds are drawn outside, so that the second computation drops what the first dropped.
        seeds = block.draw_seeds()
        recomputed = keras.remat(lambda x: block(x, mask, training=training, seeds=seeds))
        return recomputed(hidden)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "num_layers": self.num_layers,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "max_sequence_length": self.max_sequence_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": self.activation,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "initializer_range": self.initializer_range,
            "gradient_checkpointing": self.gradient_checkpointing,
            "causal": self.causal,
        }
