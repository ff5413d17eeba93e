"""BERT, the bidirectional Transformer encoder (Devlin et al. 2019).

Shapes: B batch, T length, D hidden, N heads, V vocabulary.
"""

from typing import Any

import keras

from kbert.architectures import BERT
from kbert.layers.residual import constructor_arguments
from kbert.models.encoder_model import EncoderModel


@keras.saving.register_keras_serializable("kbert")
class Bert(EncoderModel):
    """Embeddings, a stack of encoder blocks, and a pooler on the first position.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        num_layers: number of encoder blocks.
        num_heads: attention heads per block; must divide `hidden_dim`.
        intermediate_dim: width of the feed-forward networks.
        max_sequence_length: the longest sequence, in tokens.
        num_segments: the number of segment types.
        dropout: rate of the dropout on embeddings and sublayers.
        attention_dropout: rate of the dropout on attention probabilities.
        activation: of the feed-forward networks; BERT's is the exact GELU.
        layer_norm_epsilon: added to the variance in every LayerNorm.
        initializer_range: standard deviation of the truncated normal initializer.
        gradient_checkpointing: keep only each block's input for the backward pass and recompute the
            block there; less memory, about a third more time, the same gradients.
        causal: whether each position sees only itself and what came before. [CLS] would then see
            nothing else: the pooler reads the last real token instead of the first.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`, or an argument has no such value.
    """

    architecture = BERT

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
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_layers, self.num_heads = num_layers, num_heads
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length, self.num_segments = max_sequence_length, num_segments
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.layer_norm_epsilon = activation, layer_norm_epsilon
        self.initializer_range = initializer_range
        self.gradient_checkpointing, self.causal = gradient_checkpointing, causal
        self.embeddings = self._embeddings(hidden_dim)
        self.blocks = [self._block(index) for index in range(num_layers)]
        self.pooler = self._linear("tanh", "pooler")
        self.build()

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
            `sequence_output` (B, T, D), undefined at padded positions, and `pooled_output` (B, D).
        """
        return self._outputs(inputs, training)
