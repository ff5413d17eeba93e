"""Adapters of one encoder block: bottlenecks behind its sublayers.

An adapter is no part of the block: it is handed to it, so that several may share one block.

Shapes: D hidden width, I inner width of the feed-forward network, m bottleneck.
"""

from collections.abc import Callable
from typing import Any

import keras

from kbert.layers.encoder_block import ATTENTION, FEED_FORWARD
from kbert.layers.linear import Linear, normal_linear
from kbert.layers.residual import ConfiguredLayer, LayerNorm, ShapeKeepingLayer


@keras.saving.register_keras_serializable("kbert")
class Bottleneck(ShapeKeepingLayer):
    """up(f(down(x))): what a bottleneck adapter adds, without a residual connection.

    Args:
        adapter_dim: m.
        activation: f.
        initializer_range: standard deviation of the truncated normal initializer of the weights.

    Raises:
        ValueError: `adapter_dim` is not positive, or the activation is unknown.
    """

    def __init__(
        self,
        adapter_dim: int,
        activation: str = "relu",
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if adapter_dim < 1:
            raise ValueError(
                f"`adapter_dim` must be at least 1. Received: adapter_dim={adapter_dim}"
            )
        self.adapter_dim, self.activation = adapter_dim, activation
        self.initializer_range = initializer_range
        self.down = self._linear(adapter_dim, activation, "down")

    def _linear(self, units: int, activation: str | None, name: str) -> Linear:
        dtype = self.dtype_policy
        return normal_linear(units, self.initializer_range, activation, dtype=dtype, name=name)

    def build(self, input_shape: Any) -> None:
        """Creates 2 D m + m + D weights for an input (..., D)."""
        self.up = self._linear(input_shape[-1], None, "up")
        self.down.build(input_shape)
        self.up.build((*input_shape[:-1], self.adapter_dim))
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps `inputs` (..., D) to the same shape; `training` only concerns the activation."""
        return self.up(self.down(inputs, training=training))


class BlockAdapter(ConfiguredLayer):
    """Base class of the adapters of one block; this one changes nothing."""

    def begin_in(self, block: Any) -> None:
        """Sets what begins as the block's own; here nothing.

        Args:
            block: a built `EncoderBlock`.
        """

    def added(self, layer: str, inputs: Any) -> Any:
        """Returns what is added to the product of a dense layer, (rows, units), or None.

        Args:
            layer: "qkv", "attention_output", "intermediate" or "output".
            inputs: what the layer reads, (..., D) or (..., I).
        """
        return None

    def behind(
        self,
        sublayer: str,
        inputs: Any,
        hidden: Any,
        norm: Callable[[Any], Any],
        training: bool | None = None,
    ) -> Any:
        """Returns the output of a sublayer with its residual connection, (..., D).

        Args:
            sublayer: `ATTENTION` or `FEED_FORWARD`.
            inputs: x, what the sublayer read, (..., D).
            hidden: h, what it gave, behind its dropout, (..., D).
            norm: the block's LayerNorm.
            training: whether it trains.
        """
        return norm(inputs + hidden)


@keras.saving.register_keras_serializable("kbert")
class HoulsbyAdapter(BlockAdapter):
    """LN(x + h + bottleneck(h)) behind both sublayers, with LayerNorms of its own.

    Source: Houlsby et al. 2019, section 2.1, which trains the LayerNorms too. Copies leave those of
    the block as they are, for other adapters.

    Args:
        adapter_dim: m.
        activation: of the bottlenecks.
        initializer_range: standard deviation of their new weights: close to the identity.
        epsilon: of the LayerNorms, as the block has it.
    """

    def __init__(
        self,
        adapter_dim: int,
        activation: str = "gelu",
        initializer_range: float = 1e-3,
        epsilon: float = 1e-12,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.adapter_dim, self.activation = adapter_dim, activation
        self.initializer_range, self.epsilon = initializer_range, epsilon
        given, dtype = (adapter_dim, activation, initializer_range), self.dtype_policy
        self.bottlenecks = {
            name: Bottleneck(*given, dtype=dtype, name=name) for name in (ATTENTION, FEED_FORWARD)
        }
        self.norms = {
            name: LayerNorm(epsilon, dtype=dtype, name=f"{name}_layer_norm")
            for name in (ATTENTION, FEED_FORWARD)
        }

    def build(self, input_shape: Any) -> None:
        """Creates 2 (2 D m + m + 3 D) weights for an input (..., D)."""
        for layer in (*self.bottlenecks.values(), *self.norms.values()):
            layer.build(input_shape)
        self.built = True

    def begin_in(self, block: Any) -> None:
        """Copies the LayerNorms of the block.

        Args:
            block: a built `EncoderBlock`.
        """
        for name, own in self.norms.items():
            norm = getattr(block, f"{name}_residual").layer_norm
            own.gamma.assign(norm.gamma)
            own.beta.assign(norm.beta)

    def behind(
        self,
        sublayer: str,
        inputs: Any,
        hidden: Any,
        norm: Callable[[Any], Any],
        training: bool | None = None,
    ) -> Any:
        more = self.bottlenecks[sublayer](hidden, training=training)
        return self.norms[sublayer](inputs + hidden + more)


@keras.saving.register_keras_serializable("kbert")
class PfeifferAdapter(BlockAdapter):
    """LN(bottleneck(a) + h + x) with a = LN(h + x), behind the feed-forward network alone.

    Source: Pfeiffer et al. 2021 (AdapterFusion), section 3.1, in the form of AdapterHub.

    Args:
        adapter_dim: m.
        activation: of the bottleneck.
        initializer_range: standard deviation of its new weights.
    """

    def __init__(
        self,
        adapter_dim: int,
        activation: str = "relu",
        initializer_range: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.adapter_dim, self.activation = adapter_dim, activation
        self.initializer_range = initializer_range
        given = (adapter_dim, activation, initializer_range)
        self.bottleneck = Bottleneck(*given, dtype=self.dtype_policy, name="bottleneck")

    def build(self, input_shape: Any) -> None:
        """Creates 2 D m + m + D weights for an input (..., D)."""
        self.bottleneck.build(input_shape)
        self.built = True

    def behind(
        self,
        sublayer: str,
        inputs: Any,
        hidden: Any,
        norm: Callable[[Any], Any],
        training: bool | None = None,
    ) -> Any:
        total = inputs + hidden
        if sublayer != FEED_FORWARD:
            return norm(total)
        return norm(self.bottleneck(norm(total), training=training) + total)
