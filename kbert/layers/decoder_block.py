"""One layer of a Transformer decoder."""

from typing import Any, NamedTuple

import keras

from kbert.layers.attention import CrossAttention, SelfAttention
from kbert.layers.encoder_block import TransformerBlock
from kbert.layers.key_value_cache import KeyValueCache, empty_cache
from kbert.layers.masks import with_padding


class DecoderCache(NamedTuple):
    """Cache of one layer during decoding."""

    own: KeyValueCache  # keys and values of the hypotheses so far
    # keys and values of the memory, (B, N, S, H) each; per row, not per hypothesis.
    memory: tuple[Any, Any]


@keras.saving.register_keras_serializable("kbert")
class DecoderBlock(TransformerBlock):
    """Masked self-attention, attention to a memory, feed-forward network; each within a residual.

    Source: Vaswani et al. 2017, section 3.1.

    Args:
        num_heads: N; must divide the hidden width.
        intermediate_dim: I, width of the feed-forward network.
        dropout: rate of the dropout on the output of each sublayer.
        attention_dropout: rate of the dropout on the attention probabilities.
        activation: of the feed-forward network.
        norm: "post" or "pre".
        epsilon: of the LayerNorms.
        kernel_initializer: Keras initializer of the matrices.
    """

    def __init__(
        self,
        num_heads: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "post",
        epsilon: float = 1e-5,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        sizes = (num_heads, intermediate_dim, dropout, attention_dropout)
        super().__init__(*sizes, activation, norm, epsilon, kernel_initializer, **kwargs)

    def _make_attentions(self) -> None:
        self.self_attention = self._attention(SelfAttention, "self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")
        self.cross_attention = self._attention(CrossAttention, "cross_attention")
        self.cross_attention_residual = self._residual("cross_attention_residual")

    def build(self, inputs_shape: Any, memory_shape: Any) -> None:
        """Creates the weights for inputs (B, T, D) and a memory (B, S, M)."""
        self.self_attention.build(inputs_shape)
        self.self_attention_residual.build(inputs_shape)
        self.cross_attention.build(inputs_shape, memory_shape)
        self.cross_attention_residual.build(inputs_shape)
        self.feed_forward.build(inputs_shape)
        self.feed_forward_residual.build(inputs_shape)
        self.built = True

    def call(
        self,
        inputs: Any,
        memory: Any,
        self_mask: Any = None,
        memory_mask: Any = None,
        training: bool | None = None,
    ) -> Any:
        """Decodes all positions of a known target (teacher forcing) to (B, T, D).

        Args:
            inputs: (B, T, D).
            memory: (B, S, M).
            self_mask: bool, broadcastable to (B, N, T, T), True = may attend.
            memory_mask: bool, broadcastable to (B, N, T, S), or None; or (B, S), True for a real
                token, the implicit mask that Keras passes.
            training: whether dropout is on.
        """
        if memory_mask is not None and len(memory_mask.shape) == 2:
            memory_mask = with_padding(None, memory_mask)
        attended = self._attended(inputs, self_mask, training)
        crossed = self.cross_attention_residual(
            attended,
            sublayer=lambda x: self.cross_attention(x, memory, memory_mask, training=training),
            training=training,
        )
        return self._fed(crossed, training)

    def _attended(self, inputs: Any, self_mask: Any, training: bool | None) -> Any:
        return self.self_attention_residual(
            inputs,
            sublayer=lambda x: self.self_attention(x, self_mask, training=training),
            training=training,
        )

    def memory_scores(
        self, inputs: Any, memory: Any, self_mask: Any = None, memory_mask: Any = None
    ) -> Any:
        """Returns the probabilities (B, N, T, S) of the attention to the memory.

        Args:
            inputs: (B, T, D).
            memory: (B, S, M).
            self_mask: bool, broadcastable to (B, N, T, T), True = may attend; or None.
            memory_mask: bool, broadcastable to (B, N, T, S), or None.
        """
        attended = self._attended(inputs, self_mask, None)
        if self.norm == "pre":
            attended = self.cross_attention_residual.layer_norm(attended)
        return self.cross_attention.scores(attended, memory, memory_mask)

    def start(self, memory: Any, slots: int, capacity: int | None) -> DecoderCache:
        """Returns the cache before the first step.

        Args:
            memory: (B, S, M).
            slots: K, the most hypotheses a row.
            capacity: the most steps, where shapes must be static; otherwise None.
        """
        keys_values = self.cross_attention.keys_values(memory)
        return DecoderCache(empty_cache(keys_values[0], slots, capacity), keys_values)

    def step(
        self, inputs: Any, cache: DecoderCache, time: Any, visible: Any, memory_mask: Any
    ) -> tuple[Any, DecoderCache]:
        """Decodes one more position of every hypothesis, to (B, k, D) and the new cache.

        Args:
            inputs: (B, k, D).
            cache: from `start` or the previous step.
            time: int scalar, the position.
            visible: bool (B, 1, k, M), see `kbert.layers.key_value_cache.path_mask`.
            memory_mask: bool (B, 1, 1, S), or None.
        """
        own = cache.own

        def attend(x: Any) -> Any:
            nonlocal own
            attended, own = self.self_attention.step(x, own, time, visible)
            return attended

        attended = self.self_attention_residual(inputs, sublayer=attend)
        crossed = self._crossed(attended, cache, memory_mask)
        return self._fed(crossed, None), cache._replace(own=own)

    def _crossed(self, inputs: Any, cache: Any, memory_mask: Any) -> Any:
        return self.cross_attention_residual(
            inputs, sublayer=lambda x: self.cross_attention.attend_to(x, cache.memory, memory_mask)
        )
