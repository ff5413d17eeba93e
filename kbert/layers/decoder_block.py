"""One layer of a Transformer decoder."""

import math
from typing import Any, NamedTuple

import keras
from keras import ops

from kbert.layers.attention import CrossAttention, SelfAttention
from kbert.layers.encoder_block import TransformerBlock
from kbert.layers.key_value_cache import KeyValueCache, Room, appended, empty_cache
from kbert.layers.masks import with_padding


class DecoderCache(NamedTuple):
    """Cache of one layer during decoding."""

    own: KeyValueCache  # keys and values of the hypotheses so far
    # keys and values of the memory, (B, N, S, H) each; per row, not per hypothesis.
    memory: tuple[Any, Any]


def step_to_itself(
    attention: SelfAttention, inputs: Any, cache: KeyValueCache, time: Any, hidden: Any, room: Room
) -> tuple[Any, KeyValueCache]:
    """Computes position `time` of k hypotheses a row, each of which sees its own path only.

    Returns (B k, D), and the cache with the new entries.

    Args:
        attention: the layer.
        inputs: (B k, D), that position of each hypothesis.
        cache: keys and values of all slots of the earlier steps.
        time: int scalar.
        hidden: (B, 1, k, M), see `kbert.layers.masks.hiding`, for the entries of the new cache.
        room: the form of the cache.
    """
    query, key, value = _heads(attention, attention.qkv(inputs), hidden.shape[2], 3)
    cache = appended(cache, key, value, time, room)
    return _attended(attention, query, *cache, hidden), cache


def step_to_memory(
    attention: CrossAttention,
    inputs: Any,
    hypotheses: int,
    keys_values: tuple[Any, Any],
    hidden: Any,
) -> Any:
    """Attends from k hypotheses a row to a memory, to (B k, D).

    Args:
        attention: the layer.
        inputs: (B k, D).
        hypotheses: k.
        keys_values: from `CrossAttention.keys_values`, (B, N, S, H) each.
        hidden: (B, 1, 1, S), see `kbert.layers.masks.hiding`.
    """
    (query,) = _heads(attention, attention.query(inputs), hypotheses, 1)
    return _attended(attention, query, *keys_values, hidden)


def _heads(attention: Any, projected: Any, hypotheses: int, parts: int) -> tuple[Any, ...]:
    """Splits (B k, parts D) into arrays (B, N, k, H)."""
    in_rows = ops.reshape(projected, (-1, hypotheses, projected.shape[-1]))
    return tuple(attention.split_heads(in_rows, parts))


def _attended(attention: Any, query: Any, key: Any, value: Any, hidden: Any) -> Any:
    """Attends from (B, N, k, H) to (B, N, S, H), to (B k, D); `hidden` as `hiding` returns it."""
    scale = ops.cast(1.0 / math.sqrt(query.shape[-1]), query.dtype)
    scores = ops.matmul(query * scale, ops.transpose(key, (0, 1, 3, 2)))
    # TensorFlow would make a sum part of the product, in a oneDNN matmul that is slower.
    scores = scores - hidden
    # (Keras' softmax warns of a single key.)
    probabilities = ops.ones_like(scores) if scores.shape[-1] == 1 else ops.softmax(scores)
    context = ops.transpose(ops.matmul(probabilities, value), (0, 2, 1, 3))
    width = context.shape[-1] * attention.num_heads
    return attention.output_linear(ops.reshape(context, (-1, width)))


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

    def start(
        self, memory: Any, memory_mask: Any, slots: int, capacity: int | None
    ) -> DecoderCache:
        """Returns the cache before the first step.

        Args:
            memory: (B, S, M).
            memory_mask: bool (B, 1, 1, S), True = may attend.
            slots: K, the most hypotheses a row.
            capacity: the most steps, where shapes must be static; otherwise None.
        """
        keys_values = self.cross_attention.keys_values(memory, memory_mask)
        return DecoderCache(empty_cache(keys_values[0], slots, capacity), keys_values)

    def step(
        self, inputs: Any, cache: Any, time: Any, hidden: Any, memory_hidden: Any, room: Room
    ) -> tuple[Any, Any]:
        """Decodes one more position of every hypothesis, to (B k, D) and the new cache.

        Args:
            inputs: (B k, D).
            cache: from `start` or the previous step.
            time: int scalar, the position.
            hidden: (B, 1, k, M), `kbert.layers.masks.hiding` of the `path_mask`.
            memory_hidden: (B, 1, 1, S), the same of the memory.
            room: the form of the caches.
        """
        own = cache.own

        def attend(x: Any) -> Any:
            nonlocal own
            attended, own = step_to_itself(self.self_attention, x, own, time, hidden, room)
            return attended

        attended = self.self_attention_residual(inputs, sublayer=attend)
        crossed = self._crossed(attended, hidden.shape[2], cache, memory_hidden)
        return self._fed(crossed, None), cache._replace(own=own)

    def _crossed(self, inputs: Any, hypotheses: int, cache: Any, hidden: Any) -> Any:
        return self.cross_attention_residual(
            inputs,
            sublayer=lambda x: step_to_memory(
                self.cross_attention, x, hypotheses, cache.memory, hidden
            ),
        )
