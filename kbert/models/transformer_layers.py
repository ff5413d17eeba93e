"""The arguments, layers and weights of a Transformer."""

from typing import Any

import keras

from kbert.layers.blocks.decoder_block import DecoderBlock
from kbert.layers.blocks.encoder_block import EncoderBlock
from kbert.layers.core.embeddings import LearnedPositions, SinusoidalPositions, TokenEmbedding
from kbert.layers.core.linear import Bias, Linear
from kbert.layers.core.residual import Dropout, LayerNorm

POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned")
TIED = ("all", "target", "none")


class TransformerLayers(keras.Model):
    """The layers of `kbert.models.transformer.Transformer`, which documents the arguments."""

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "post",
        positions: str = "sinusoidal",
        tied: str = "all",
        source_vocabulary_size: int | None = None,
        output_bias: bool = False,
        layer_norm_epsilon: float = 1e-5,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "transformer")
        super().__init__(**kwargs)
        for name, value, known in (("positions", positions, POSITIONS), ("tied", tied, TIED)):
            if value not in known:
                raise ValueError(
                    f"`{name}` must be one of {list(known)}. Received: {name}={value!r}"
                )
        if tied == "all" and source_vocabulary_size not in (None, vocabulary_size):
            raise ValueError(
                '`tied` must not be "all" for vocabularies of different sizes. Received: '
                f"vocabulary_size={vocabulary_size}, source_vocabulary_size="
                f"{source_vocabulary_size}"
            )
        self.vocabulary_size = vocabulary_size
        self.hidden_dim = hidden_dim
        self.num_encoder_layers, self.num_decoder_layers = num_encoder_layers, num_decoder_layers
        self.num_heads, self.intermediate_dim = num_heads, intermediate_dim
        self.max_sequence_length = max_sequence_length
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.norm, self.positions = activation, norm, positions
        self.tied, self.source_vocabulary_size = tied, source_vocabulary_size
        self.output_bias, self.layer_norm_epsilon = output_bias, layer_norm_epsilon
        self._make_layers()
        self.build()

    def _make_layers(self) -> None:
        dtype = self.dtype_policy
        self.source_embedding = self._embedding("source_embedding", self.source_vocabulary_size)
        self.target_embedding = self.source_embedding
        if self.tied != "all":
            self.target_embedding = self._embedding("target_embedding", None)
        self.source_positions = self._positions("source_positions")
        self.target_positions = self._positions("target_positions")
        self.embedding_dropout = Dropout(self.dropout, dtype=dtype, name="embedding_dropout")
        layers = range(self.num_encoder_layers)
        self.encoder_blocks = [self._encoder_block(f"encoder_block_{i}") for i in layers]
        layers = range(self.num_decoder_layers)
        self.decoder_blocks = [self._decoder_block(f"decoder_block_{i}") for i in layers]
        if self.norm == "pre":
            self.encoder_norm = LayerNorm(self.layer_norm_epsilon, dtype=dtype, name="encoder_norm")
            self.decoder_norm = LayerNorm(self.layer_norm_epsilon, dtype=dtype, name="decoder_norm")
        self.output_linear: Any = None
        if self.tied == "none":
            self.output_linear = Linear(
                self.vocabulary_size, use_bias=self.output_bias, dtype=dtype, name="output"
            )
        elif self.output_bias:
            self.output_linear = Bias(self.vocabulary_size, dtype=dtype, name="output")

    def _embedding(self, name: str, size: int | None) -> TokenEmbedding:
        # Scaled by sqrt(D) on look-up, so that a vector has about the norm of the position vectors.
        initializer = keras.initializers.RandomNormal(stddev=self.hidden_dim**-0.5)
        return TokenEmbedding(
            size or self.vocabulary_size,
            self.hidden_dim,
            keras.initializers.serialize(initializer),
            dtype=self.dtype_policy,
            name=name,
        )

    def _positions(self, name: str) -> Any:
        sizes = (self.max_sequence_length, self.hidden_dim)
        if self.positions == "learned":
            return LearnedPositions(*sizes, dtype=self.dtype_policy, name=name)
        interleaved = self.positions == "sinusoidal"
        return SinusoidalPositions(*sizes, interleaved, dtype=self.dtype_policy, name=name)

    def _block_arguments(self) -> tuple[Any, ...]:
        sizes = (self.num_heads, self.intermediate_dim, self.dropout, self.attention_dropout)
        return (*sizes, self.activation, self.norm, self.layer_norm_epsilon)

    def _encoder_block(self, name: str) -> Any:
        return EncoderBlock(*self._block_arguments(), dtype=self.dtype_policy, name=name)

    def _decoder_block(self, name: str) -> Any:
        return DecoderBlock(*self._block_arguments(), dtype=self.dtype_policy, name=name)

    def build(self, input_shape: Any = None) -> None:
        if getattr(self, "built", False):
            return
        states = (None, None, self.hidden_dim)
        self.source_embedding.build()
        if self.tied != "all":
            self.target_embedding.build()
        if self.positions == "learned":
            self.source_positions.build()
            self.target_positions.build()
        self.embedding_dropout.build()
        self._build_blocks(states)
        if self.norm == "pre":
            self.encoder_norm.build(states)
            self.decoder_norm.build(states)
        if self.tied == "none":
            self.output_linear.build(states)
        elif self.output_bias:
            self.output_linear.build()
        self.built = True

    def _build_blocks(self, states: Any) -> None:
        for block in self.encoder_blocks:
            block.build(states)
        for block in self.decoder_blocks:
            block.build(states, states)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "hidden_dim": self.hidden_dim,
            "num_encoder_layers": self.num_encoder_layers,
            "num_decoder_layers": self.num_decoder_layers,
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "max_sequence_length": self.max_sequence_length,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "activation": self.activation,
            "norm": self.norm,
            "positions": self.positions,
            "tied": self.tied,
            "source_vocabulary_size": self.source_vocabulary_size,
            "output_bias": self.output_bias,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }
