"""Bottleneck adapters: a few new weights in each sublayer of a frozen encoder."""

from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from kbert.layers.encoder_block import EncoderBlock
from kbert.layers.linear import Linear, normal_linear
from kbert.layers.residual import Residual, ShapeKeepingLayer


@keras.saving.register_keras_serializable("kbert")
class Adapter(ShapeKeepingLayer):
    """x + up(f(down(x))): a bottleneck with a residual connection.

    Source: Houlsby et al. 2019, section 2.1. It starts close to the identity.

    Args:
        adapter_dim: m, the width of the bottleneck.
        activation: f; the source's is GELU.
        initializer_range: standard deviation of the truncated normal initializer of the weights.

    Raises:
        ValueError: `adapter_dim` is not positive.
    """

    def __init__(
        self,
        adapter_dim: int,
        activation: str = "gelu",
        initializer_range: float = 1e-3,
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
        return ops.add(inputs, self.up(self.down(inputs, training=training)))


@keras.saving.register_keras_serializable("kbert")
class AdapterResidual(Residual):
    """LN(x + adapter(dropout(f(x)))), post-norm only.

    Source: Houlsby et al. 2019, figure 2.

    Args:
        adapter_dim: m, the width of the adapter.
        dropout: rate of the dropout on the sublayer's output.
        epsilon: of the LayerNorm.
    """

    def __init__(
        self, adapter_dim: int, dropout: float = 0.0, epsilon: float = 1e-12, **kwargs: Any
    ) -> None:
        super().__init__(dropout, "post", epsilon, **kwargs)
        self.adapter_dim = adapter_dim
        self.adapter = Adapter(adapter_dim, dtype=self.dtype_policy, name="adapter")

    def build(self, input_shape: Any) -> None:
        """Creates LayerNorm and adapter for an input (..., D)."""
        self.adapter.build(input_shape)
        super().build(input_shape)

    def call(
        self,
        inputs: Any,
        sublayer: Callable[[Any], Any],
        training: bool | None = None,
        seed: Any = None,
    ) -> Any:
        """Applies sublayer and adapter within the residual connection.

        Args:
            inputs: (..., D).
            sublayer: maps (..., D) to (..., D); passed by keyword.
            training: whether dropout is on.
            seed: drawn seed of the dropout, or None.
        """
        hidden = self.dropout_layer(sublayer(inputs), training=training, seed=seed)
        return self.layer_norm(inputs + self.adapter(hidden, training=training))


@keras.saving.register_keras_serializable("kbert")
class AdapterEncoderBlock(EncoderBlock):
    """An `EncoderBlock` with an adapter after each of its two sublayers.

    Source: Houlsby et al. 2019, figure 2.

    Args:
        adapter_dim: m, the width of the adapters.
        num_heads: N; must divide the hidden width. The norm is "post".
        intermediate_dim: I, width of the feed-forward network.
        dropout: rate of the dropout on the output of each sublayer.
        attention_dropout: rate of the dropout on the attention probabilities.
        activation: of the feed-forward network.
        epsilon: of the LayerNorms.
        kernel_initializer: Keras initializer of the matrices; the adapters have their own.
    """

    def __init__(
        self,
        adapter_dim: int,
        num_heads: int,
        intermediate_dim: int,
        dropout: float = 0.1,
        attention_dropout: float = 0.1,
        activation: str = "gelu",
        epsilon: float = 1e-12,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        self.adapter_dim = adapter_dim  # `_residual` reads it
        sizes = (num_heads, intermediate_dim, dropout, attention_dropout)
        super().__init__(*sizes, activation, "post", epsilon, kernel_initializer, **kwargs)

    def _residual(self, name: str) -> Residual:
        sizes = (self.adapter_dim, self.dropout, self.epsilon)
        return AdapterResidual(*sizes, dtype=self.dtype_policy, name=name)
