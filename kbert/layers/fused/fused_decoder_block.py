"""One layer of a decoder that also attends to BERT's states."""

from typing import Any, NamedTuple

import keras

from kbert.layers.attention.cross_attention import CrossAttention
from kbert.layers.attention.key_value_cache import KeyValueCache
from kbert.layers.blocks.decoder_block import DecoderBlock
from kbert.layers.core.residual import Residual
from kbert.layers.fused.fused_residual import FusedResidual


class FusedDecoderCache(NamedTuple):
    """Cache of one layer during decoding: a `DecoderCache` with BERT's keys and values."""

    own: KeyValueCache
    memory: tuple[Any, Any]
    bert: tuple[Any, Any]


@keras.saving.register_keras_serializable("kbert")
class FusedDecoderBlock(DecoderBlock):
    """A `DecoderBlock` with an attention to BERT beside that to the encoder.

    Both read the same queries and share the residual and the LayerNorm. Memories and their masks
    are pairs, the encoder's and BERT's. Source: Zhu et al. 2020, equation 4.

    Args:
        *args: arguments of `DecoderBlock`.
        drop_net: rate of the drop-net.
        **kwargs: further arguments of `DecoderBlock`.
    """

    def __init__(self, *args: Any, drop_net: float = 1.0, **kwargs: Any) -> None:
        self.drop_net = drop_net  # `_residual` reads it
        super().__init__(*args, **kwargs)
        self.bert_attention = self._attention(CrossAttention, "bert_attention")

    def _residual(self, name: str) -> Residual:
        if name != "cross_attention_residual":
            return super()._residual(name)
        return FusedResidual(
            self.drop_net, self.dropout, self.norm, self.epsilon, dtype=self.dtype_policy, name=name
        )

    def build(self, inputs_shape: Any, memory_shape: tuple[Any, Any]) -> None:
        """Creates the weights for inputs (B, T, D) and memories (B, S, D) and (B, L, M)."""
        self.bert_attention.build(inputs_shape, memory_shape[1])
        super().build(inputs_shape, memory_shape[0])

    def call(
        self,
        inputs: Any,
        memory: tuple[Any, Any],
        self_mask: Any = None,
        memory_mask: tuple[Any, Any] = (None, None),
        training: bool | None = None,
    ) -> Any:
        """Decodes all positions of a known target (teacher forcing), with pairs of memories.

        Args:
            inputs: (B, T, D).
            memory: (B, S, D) of the encoder and (B, L, M) of BERT.
            self_mask: bool, broadcastable to (B, N, T, T), True = may attend.
            memory_mask: bool masks, broadcastable to (B, N, T, S) and (B, N, T, L), or None.
            training: whether dropout and drop-net are on.

        Returns:
            (B, T, D).
        """
        attended = self._attended(inputs, self_mask, training)
        (states, bert), (mask, bert_mask) = memory, memory_mask
        crossed = self.cross_attention_residual(
            attended,
            sublayer=lambda x: (
                self.cross_attention(x, states, mask, training=training),
                self.bert_attention(x, bert, bert_mask, training=training),
            ),
            training=training,
        )
        return self._fed(crossed, training)

    def memory_scores(
        self, inputs: Any, memory: Any, self_mask: Any = None, memory_mask: Any = (None, None)
    ) -> Any:
        """Returns the probabilities (B, N, T, S) of the attention to the encoder.

        Args:
            inputs: (B, T, D).
            memory: a pair: (B, S, D) of the encoder and (B, L, M) of BERT.
            self_mask: bool, broadcastable to (B, N, T, T), True = may attend; or None.
            memory_mask: a pair of bool, broadcastable to (B, N, T, S) and (B, N, T, L), or None.
        """
        return super().memory_scores(inputs, memory[0], self_mask, memory_mask[0])

    def start(self, memory: Any, slots: int, capacity: int | None) -> Any:
        """Returns the cache before the first step.

        Args:
            memory: a pair: (B, S, D) of the encoder and (B, L, M) of BERT.
            slots: K, the most hypotheses a row.
            capacity: the most steps, where shapes must be static; otherwise None.
        """
        cache = super().start(memory[0], slots, capacity)
        keys_values = self.bert_attention.keys_values(memory[1])
        return FusedDecoderCache(cache.own, cache.memory, keys_values)

    def _crossed(self, inputs: Any, cache: Any, memory_mask: Any) -> Any:
        return self.cross_attention_residual(
            inputs,
            sublayer=lambda x: (
                self.cross_attention.attend_to(x, cache.memory, memory_mask[0]),
                self.bert_attention.attend_to(x, cache.bert, memory_mask[1]),
            ),
        )

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "drop_net": self.drop_net}
