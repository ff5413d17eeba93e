"""One layer of an encoder that also attends to BERT's states."""

from typing import Any

import keras

from kbert.layers.attention.cross_attention import CrossAttention
from kbert.layers.blocks.encoder_block import EncoderBlock
from kbert.layers.core.residual import Residual
from kbert.layers.fused.fused_residual import FusedResidual


@keras.saving.register_keras_serializable("kbert")
class FusedEncoderBlock(EncoderBlock):
    """An `EncoderBlock` with an attention to BERT beside its self-attention.

    Both read the same queries and share the residual and the LayerNorm; keys and values are
    projected directly from BERT's width. Source: Zhu et al. 2020, equation 2.

    Args:
        *args: arguments of `EncoderBlock`.
        drop_net: rate of the drop-net.
        **kwargs: further arguments of `EncoderBlock`.
    """

    def __init__(self, *args: Any, drop_net: float = 1.0, **kwargs: Any) -> None:
        self.drop_net = drop_net  # `_residual` reads it
        super().__init__(*args, **kwargs)
        self.bert_attention = self._attention(CrossAttention, "bert_attention")

    def _residual(self, name: str) -> Residual:
        if name != "attention_residual":
            return super()._residual(name)
        return FusedResidual(
            self.drop_net, self.dropout, self.norm, self.epsilon, dtype=self.dtype_policy, name=name
        )

    # Built like an `EncoderBlock`, but no substitute for one: it reads BERT's states too.
    def build(self, input_shape: Any, bert_shape: Any) -> None:  # type: ignore[override]
        """Creates the weights for an input (B, S, D) and BERT's states (B, L, M)."""
        self.bert_attention.build(input_shape, bert_shape)
        super().build(input_shape)

    def call(  # type: ignore[override]  # as `build`: one input more
        self,
        inputs: Any,
        bert_states: Any,
        attention_mask: Any = None,
        bert_mask: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Encodes.

        Args:
            inputs: (B, S, D).
            bert_states: (B, L, M), BERT's hidden states of the same text in BERT's tokens.
            attention_mask: bool, broadcastable to (B, N, S, S), True = may attend; or None.
            bert_mask: bool, broadcastable to (B, N, S, L), or None.
            training: whether dropout and drop-net are on.

        Returns:
            (B, S, D).
        """
        attended = self.attention_residual(
            inputs,
            sublayer=lambda x: (
                self.attention(x, attention_mask, training=training),
                self.bert_attention(x, bert_states, bert_mask, training=training),
            ),
            training=training,
        )
        return self._fed(attended, training)

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "drop_net": self.drop_net}
