"""Layers of an encoder and of a decoder that also attend to BERT's states, and their drop-net."""

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
from keras import ops

from kbert.layers.attention import CrossAttention
from kbert.layers.decoder_block import DecoderBlock, step_to_memory
from kbert.layers.encoder_block import EncoderBlock, TransformerBlock
from kbert.layers.key_value_cache import KeyValueCache
from kbert.layers.residual import ConfiguredLayer, DrawnSeed, Residual


@keras.saving.register_keras_serializable("kbert")
class DropNet(ConfiguredLayer):
    """Draws the weights of two branches, once per layer and batch.

    In training, with U uniform in [0, 1): (1, 0) where U < p / 2, (0, 1) where U > 1 - p / 2, and
    (1/2, 1/2) between; otherwise always (1/2, 1/2).

    Source: Zhu et al. 2020, section 3.3.

    Args:
        rate: p, from 0 to 1; the paper's best is 1.
        seed: int or None, the start of this layer's random sequence.

    Raises:
        ValueError: `rate` is outside its range.

    Attributes:
        forced: two weights that are always returned instead, for tests; normally None.
    """

    forced: tuple[float, float] | None = None

    def __init__(self, rate: float = 1.0, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(f"`rate` must be in [0, 1]. Received: rate={rate}")
        self.rate, self.seed = rate, seed

    def build(self, input_shape: Any = None) -> None:
        """Creates the state of the random sequence."""
        if self.rate > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed, name="seed_generator")
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Returns two weights, scalars of the dtype of `inputs`, drawn if `training` is True."""
        if self.forced is not None:
            first, second = self.forced
        elif not training or self.rate == 0:
            first, second = 0.5, 0.5
        else:
            # Drawn in the graph: a draw in Python would be the same in every step.
            drawn = DrawnSeed(self.seed_generator.next())
            chance = keras.random.uniform((), dtype="float32", seed=drawn)
            half = self.rate / 2
            only_first, only_second = chance < half, chance >= 1 - half
            first = ops.where(only_first, 1.0, ops.where(only_second, 0.0, 0.5))
            second = 1.0 - first
        return ops.cast(first, inputs.dtype), ops.cast(second, inputs.dtype)


@keras.saving.register_keras_serializable("kbert")
class FusedResidual(Residual):
    """Wraps two sublayers f and g with dropout, drop-net, one residual and one LayerNorm.

    Post-norm: LN(x + r1 dropout(f(x)) + r2 dropout(g(x))); pre-norm: x + r1 dropout(f(LN(x))) +
    r2 dropout(g(LN(x))).

    Source: Zhu et al. 2020, equations 2 and 4.

    Args:
        drop_net: rate of the drop-net that draws r1 and r2.
        *args: arguments of `Residual`.
        **kwargs: further arguments of `Residual`.
    """

    def __init__(self, drop_net: float = 1.0, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.drop_net_rate = drop_net
        self.drop_net = DropNet(drop_net, dtype=self.dtype_policy, name="drop_net")

    def build(self, input_shape: Any) -> None:
        """Creates the LayerNorm for an input (..., D)."""
        self.drop_net.build()
        super().build(input_shape)

    def call(
        self,
        inputs: Any,
        sublayer: Callable[[Any], tuple[Any, Any]],
        training: bool | None = None,
        seed: Any = None,
        joined: Any = None,
    ) -> Any:
        """Applies both sublayers within one residual connection, to (..., D).

        Args:
            inputs: (..., D).
            sublayer: maps (..., D) to two arrays (..., D); passed by keyword.
            training: whether dropout and drop-net are on.
            seed: not used: such a block is never recomputed.
            joined: not used: such a block takes no adapters.
        """
        first, second = sublayer(self.layer_norm(inputs) if self.norm == "pre" else inputs)
        weights = self.drop_net(inputs, training=training)
        hidden = weights[0] * self.dropout_layer(first, training=training)
        hidden = hidden + weights[1] * self.dropout_layer(second, training=training)
        return inputs + hidden if self.norm == "pre" else self.layer_norm(inputs + hidden)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "drop_net": self.drop_net_rate}


class _AttendsToBert(TransformerBlock):
    """A block with an attention to BERT beside that of the residual named `_fused`."""

    _fused: str

    def __init__(self, *args: Any, drop_net: float = 1.0, **kwargs: Any) -> None:
        self.drop_net = drop_net  # `_residual` reads it
        super().__init__(*args, **kwargs)
        self.bert_attention = self._attention(CrossAttention, "bert_attention")

    def _residual(self, name: str) -> Residual:
        if name != self._fused:
            return super()._residual(name)
        return FusedResidual(
            self.drop_net, self.dropout, self.norm, self.epsilon, dtype=self.dtype_policy, name=name
        )


@keras.saving.register_keras_serializable("kbert")
class FusedEncoderBlock(_AttendsToBert, EncoderBlock):
    """An `EncoderBlock` with an attention to BERT beside its self-attention.

    Both read the same queries and share the residual and the LayerNorm; keys and values are
    projected directly from BERT's width. Source: Zhu et al. 2020, equation 2.

    Args:
        *args: arguments of `EncoderBlock`.
        drop_net: rate of the drop-net.
        **kwargs: further arguments of `EncoderBlock`.
    """

    _fused = "attention_residual"

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
        """Encodes to (B, S, D).

        Args:
            inputs: (B, S, D).
            bert_states: (B, L, M), BERT's hidden states of the same text in BERT's tokens.
            attention_mask: bool, broadcastable to (B, N, S, S), True = may attend; or None.
            bert_mask: bool, broadcastable to (B, N, S, L), or None.
            training: whether dropout and drop-net are on.
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


class FusedDecoderCache(NamedTuple):
    """Cache of one layer during decoding: a `DecoderCache` with BERT's keys and values."""

    own: KeyValueCache
    memory: tuple[Any, Any]
    bert: tuple[Any, Any]


@keras.saving.register_keras_serializable("kbert")
class FusedDecoderBlock(_AttendsToBert, DecoderBlock):
    """A `DecoderBlock` with an attention to BERT beside that to the encoder.

    Both read the same queries and share the residual and the LayerNorm. Memories and their masks
    are pairs, the encoder's and BERT's. Source: Zhu et al. 2020, equation 4.

    Args:
        *args: arguments of `DecoderBlock`.
        drop_net: rate of the drop-net.
        **kwargs: further arguments of `DecoderBlock`.
    """

    _fused = "cross_attention_residual"

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
        """Decodes a known target (teacher forcing) to (B, T, D), with pairs of memories.

        Args:
            inputs: (B, T, D).
            memory: (B, S, D) of the encoder and (B, L, M) of BERT.
            self_mask: bool, broadcastable to (B, N, T, T), True = may attend.
            memory_mask: bool masks, broadcastable to (B, N, T, S) and (B, N, T, L), or None.
            training: whether dropout and drop-net are on.
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

    def start(self, memory: Any, memory_mask: Any, slots: int, capacity: int | None) -> Any:
        """Returns the cache before the first step.

        Args:
            memory: a pair: (B, S, D) of the encoder and (B, L, M) of BERT.
            memory_mask: a pair of bool, (B, 1, 1, S) and (B, 1, 1, L), True = may attend.
            slots: K, the most hypotheses a row.
            capacity: the most steps, where shapes must be static; otherwise None.
        """
        cache = super().start(memory[0], memory_mask[0], slots, capacity)
        keys_values = self.bert_attention.keys_values(memory[1], memory_mask[1])
        return FusedDecoderCache(cache.own, cache.memory, keys_values)

    def _crossed(self, inputs: Any, hypotheses: int, cache: Any, hidden: Any) -> Any:
        return self.cross_attention_residual(
            inputs,
            sublayer=lambda x: (
                step_to_memory(self.cross_attention, x, hypotheses, cache.memory, hidden[0]),
                step_to_memory(self.bert_attention, x, hypotheses, cache.bert, hidden[1]),
            ),
        )
