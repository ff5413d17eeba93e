"""DistilBERT, half of a BERT's layers that learned from it (Sanh et al. 2019).

Shapes: B batch, T length, D hidden, V vocabulary.
"""

from typing import Any

import keras

from kbert.layers.residual import constructor_arguments
from kbert.models.encoder import HeadForm
from kbert.models.encoder_model import EncoderModel

# Dropout, which follows each sublayer, precedes the last layer of the heads alone.
_FORM = HeadForm("two_layer", "relu", drops_state=False)


@keras.saving.register_keras_serializable("kbert")
class DistilBert(EncoderModel):
    """Embeddings of tokens and positions, and a stack of encoder blocks.

    Source: Sanh et al. 2019; transformers, `models/distilbert/modeling_distilbert.py`. There are no
    segments, whose ids are not read, and no pooler: `pooler` is None, and a call returns no
    `pooled_output`. Heads of a sequence have two layers, with ReLU, on the state of [CLS]. It
    cannot be causal.

    Args:
        vocabulary_size: V.
        hidden_dim: D.
        num_layers: number of encoder blocks.
        num_heads: attention heads per block; must divide `hidden_dim`.
        intermediate_dim: width of the feed-forward networks.
        max_sequence_length: the longest sequence, in tokens.
        dropout: rate of the dropout on embeddings and sublayers.
        attention_dropout: rate of the dropout on attention probabilities.
        activation: of the feed-forward networks; DistilBERT's is the exact GELU.
        initializer_range: standard deviation of the truncated normal initializer.
        span_dropout: rate of the dropout before the head of answer spans.
        gradient_checkpointing: keep only each block's input for the backward pass and recompute the
            block there; less memory, about a third more time, the same gradients.

    Raises:
        ValueError: `num_heads` does not divide `hidden_dim`.
    """

    architecture = "distilbert"
    sequence_form = choice_form = _FORM
    causal, num_segments, pooler = False, 0, None
    layer_norm_epsilon = 1e-12  # transformers have no field for it

    def __init__(
        self,
        vocabulary_size: int,
        hidden_dim: int,
        num_layers: int,
        num_heads: int,
        intermediate_dim: int,
        max_sequence_length: int = 512,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        initializer_range: float = 0.02,
        span_dropout: float = 0.1,
        gradient_checkpointing: bool = False,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("name", "distilbert")
        super().__init__(**kwargs)
        self.vocabulary_size, self.hidden_dim = vocabulary_size, hidden_dim
        self.num_layers, self.num_heads = num_layers, num_heads
        self.intermediate_dim = intermediate_dim
        self.max_sequence_length = max_sequence_length
        self.dropout, self.attention_dropout = dropout, attention_dropout
        self.activation, self.initializer_range = activation, initializer_range
        self.span_dropout, self.gradient_checkpointing = span_dropout, gradient_checkpointing
        self.embeddings = self._embeddings(hidden_dim)
        self.blocks = [self._block(index) for index in range(num_layers)]
        self.build()

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **constructor_arguments(self)}

    def call(self, inputs: Any, training: bool | None = None) -> dict[str, Any]:
        """Encodes a batch.

        A TensorFlow graph with dynamic shapes computes real tokens only; where shapes are static
        (XLA, TPU, JAX), and without a graph, padding is computed too.

        Args:
            inputs: dict of `token_ids` int (B, T); `padding_mask` bool (B, T), True for a
                real token, absent if all are real; `segment_ids` may be there, and are not read.
            training: whether dropout is on.

        Returns:
            `sequence_output` (B, T, D), undefined at padded positions.
        """
        return self._outputs(inputs, training)
