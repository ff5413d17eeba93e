"""ELECTRA, a BERT that learned to tell replaced tokens (Clark et al. 2020).

Shapes: B batch, T length, D hidden, E embeddings, V vocabulary.
"""

from typing import Any

import keras

from kbert.layers.residual import constructor_arguments
from kbert.models.encoder import HeadForm
from kbert.models.encoder_model import EncoderModel


@keras.saving.register_keras_serializable("kbert")
class Electra(EncoderModel):
    """Embeddings, a projection where they are narrower than the states, and encoder blocks.

    Source: Clark et al. 2020; transformers, `models/electra/modeling_electra.py`. It is the encoder
    of discriminator and generator alike. There is no pooler: `pooler` is None, and a call returns
    no `pooled_output`. Heads of a sequence have two layers, with GELU, on the state of [CLS]. It
    cannot be causal.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        num_layers: number of encoder blocks.
        num_heads: attention heads per block; must divide `hidden_dim`.
        intermediate_dim: width of the feed-forward networks.
        embedding_dim: E, width of the embeddings; None for D, and there is no projection.
        max_sequence_length: the longest sequence, in tokens.
        num_segments: the number of segment types.
        dropout: rate of the dropout on embeddings and sublayers.
        attention_dropout: rate of the dropout on attention probabilities.
        activation: of the feed-forward networks; ELECTRA's is the exact GELU.
        layer_norm_epsilon: added to the variance in every LayerNorm.
        initializer_range: standard deviation of the truncated normal initializer.
        gradient_checkpointing: keep only each block's input for the backward pass and recompute the
            block there; less memory, about a third more time, the same gradients.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`.
    """

    architecture = "electra"
    sequence_form = HeadForm("two_layer", "gelu")
    choice_form = HeadForm("two_layer", "gelu", drops_state=False)
    causal, pooler = False, None

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        embedding_dim: int | None = None,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        gradient_checkpointing: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "electra")
        super().__init__(**kwargs)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_layers, self.num_heads = num_layers, num_heads
        self.intermediate_dim, self.embedding_dim = intermediate_dim, embedding_dim or hidden_dim
        self.max_sequence_length, self.num_segments = max_sequence_length, num_segments
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.layer_norm_epsilon = activation, layer_norm_epsilon
        self.initializer_range = initializer_range
        self.gradient_checkpointing = gradient_checkpointing
        self.embeddings = self._embeddings(self.embedding_dim)
        if self.embedding_dim != hidden_dim:
            self.embedding_projection = self._linear(None, "embedding_projection")
        self.blocks = [self._block(index) for index in range(num_layers)]
        self.build()

    @property
    def token_activation(self) -> str:
        return "gelu"  # whatever that of the blocks is

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **constructor_arguments(self)}

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Encodes a batch.

        A TensorFlow graph with dynamic shapes computes real tokens only; where shapes are static
        (XLA, TPU, JAX), and without a graph, padding is computed too.

        Args:
            inputs: dict of `token_ids` int (B, T); `segment_ids` int (B, T), absent if all are 0;
                `padding_mask` bool (B, T), True for a real token, absent if all are real.
            training: whether dropout is on.

        Returns:
            `sequence_output` (B, T, D), undefined at padded positions.
        """
        return self._outputs(inputs, training)
