"""RoBERTa, a BERT of another pretraining (Liu et al. 2019).

Shapes: B batch, T length, D hidden, V vocabulary, P positions.
"""

from typing import Any

import keras

from kbert.layers.residual import constructor_arguments
from kbert.models.encoder import HeadForm
from kbert.models.encoder_model import EncoderModel

# Rows of the table of positions before that of the first token: fairseq counts from the id of the
# padding plus one, which is 2.
FIRST_POSITION = 2


@keras.saving.register_keras_serializable("kbert")
class Roberta(EncoderModel):
    """Embeddings, a stack of encoder blocks, and a pooler on the first position.

    Source: Liu et al. 2019; transformers, `models/roberta/modeling_roberta.py`. What differs from
    `Bert`: the first token has row 2 of the table of positions, which has P + 2 rows; its state is
    read by a head of two layers, and the pooler, which pretraining did not train, by that of
    choices alone. Positions count places, so that texts must be padded on their right alone, as the
    tasks do (transformers skips padding, whatever is its place).

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        num_layers: number of encoder blocks.
        num_heads: attention heads per block; must divide `hidden_dim`.
        intermediate_dim: width of the feed-forward networks.
        max_sequence_length: P, the longest sequence, in tokens.
        num_segments: the number of segment types; with one, as published, `segment_ids` are not
            read.
        dropout: rate of the dropout on embeddings and sublayers.
        attention_dropout: rate of the dropout on attention probabilities.
        activation: of the feed-forward networks; RoBERTa's is the exact GELU.
        layer_norm_epsilon: added to the variance in every LayerNorm.
        initializer_range: standard deviation of the truncated normal initializer.
        gradient_checkpointing: keep only each block's input for the backward pass and recompute the
            block there; less memory, about a third more time, the same gradients.
        causal: whether each position sees only itself and what came before. <s> would then see
            nothing else: the pooler reads the last real token instead of the first.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`.
    """

    architecture = "roberta"
    sequence_form = HeadForm("two_layer")

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        num_segments: int = 1,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        layer_norm_epsilon: float = 1e-5,
        initializer_range: float = 0.02,
        gradient_checkpointing: bool = False,
        causal: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "roberta")
        super().__init__(**kwargs)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_layers, self.num_heads = num_layers, num_heads
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length, self.num_segments = max_sequence_length, num_segments
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.layer_norm_epsilon = activation, layer_norm_epsilon
        self.initializer_range = initializer_range
        self.gradient_checkpointing, self.causal = gradient_checkpointing, causal
        self.embeddings = self._embeddings(hidden_dim, FIRST_POSITION)
        self.blocks = [self._block(index) for index in range(num_layers)]
        self.pooler = self._linear("tanh", "pooler")
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
            inputs: dict of `token_ids` int (B, T); `segment_ids` int (B, T), not read
                where there is one segment;
                `padding_mask` bool (B, T), True for a real token, absent if all are real.
            training: whether dropout is on.

        Returns:
            `sequence_output` (B, T, D), undefined at padded positions, and `pooled_output` (B, D).
        """
        return self._outputs(inputs, training)
