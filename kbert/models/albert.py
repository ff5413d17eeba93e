"""ALBERT, a BERT whose layers share their weights (Lan et al. 2019).

Shapes: B batch, T length, D hidden, E embeddings, N heads, V vocabulary, G groups.
"""

from collections.abc import Sequence
from typing import Any

import keras

from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.residual import constructor_arguments
from kbert.models.encoder_model import EncoderModel


@keras.saving.register_keras_serializable("kbert")
class Albert(EncoderModel):
    """Narrow embeddings, a projection, blocks that layers share, and a pooler.

    Source: Lan et al. 2019, sections 3.1 and 4.1; google-research/albert, `modeling.py`. With one
    group and E = 128 the base size (D = 768, twelve layers) has 12 million weights, BERT's 110.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        num_layers: number of layers.
        num_heads: attention heads per layer; must divide `hidden_dim`.
        intermediate_dim: width of the feed-forward networks.
        embedding_dim: E, width of the embeddings.
        num_groups: G, the number of blocks; each is shared by consecutive layers, as many for
            each group as can be.
        max_sequence_length: the longest sequence, in tokens.
        num_segments: the number of segment types.
        dropout: rate of the dropout on embeddings and sublayers.
        attention_dropout: rate of the dropout on attention probabilities.
        activation: of the feed-forward networks; ALBERT's is GELU by the tanh formula.
        layer_norm_epsilon: added to the variance in every LayerNorm.
        initializer_range: standard deviation of the truncated normal initializer.
        gradient_checkpointing: keep only each layer's input for the backward pass and recompute the
            layer there; less memory, about a third more time, the same gradients.
        causal: whether each position sees only itself and what came before. [CLS] would then see
            nothing else: the pooler reads the last real token instead of the first.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`, or there are more groups than layers,
            or none.
    """

    architecture = "albert"

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        embedding_dim: int = 128,
        num_groups: int = 1,
        max_sequence_length: int = 512,
        num_segments: int = 2,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        activation: str = "gelu_approximate",
        layer_norm_epsilon: float = 1e-12,
        initializer_range: float = 0.02,
        gradient_checkpointing: bool = False,
        causal: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "albert")
        super().__init__(**kwargs)
        if not 1 <= num_groups <= num_layers:
            raise ValueError(
                "`num_groups` must be between 1 and `num_layers`. Received: "
                f"num_groups={num_groups}, num_layers={num_layers}"
            )
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_layers, self.num_heads = num_layers, num_heads
        self.intermediate_dim = intermediate_dim
        self.embedding_dim, self.num_groups = embedding_dim, num_groups
        self.max_sequence_length, self.num_segments = max_sequence_length, num_segments
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.layer_norm_epsilon = activation, layer_norm_epsilon
        self.initializer_range = initializer_range
        self.gradient_checkpointing, self.causal = gradient_checkpointing, causal
        self.embeddings = self._embeddings(embedding_dim)
        self.embedding_projection = self._linear(None, "embedding_projection")
        self.blocks = [self._block(index) for index in range(num_groups)]
        self.pooler = self._linear("tanh", "pooler")
        self.build()

    @property
    def layer_blocks(self) -> Sequence[EncoderBlock]:
        layers, groups = self.num_layers, self.num_groups
        return [self.blocks[layer * groups // layers] for layer in range(layers)]

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
