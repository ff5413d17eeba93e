"""Bottleneck adapters: a few new weights in each sublayer of a frozen encoder."""

from typing import Any

import keras
from keras import ops

from kbert.layers.core.linear import Linear, normal_linear


@keras.saving.register_keras_serializable("kbert")
class Adapter(keras.layers.Layer):
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
        self.adapter_dim = adapter_dim
        self.activation = activation
        self.initializer_range = initializer_range
        self.supports_masking = True
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
        """Maps (..., D) to (..., D).

        Args:
            inputs: (..., D).
            training: passed to the activation; there is no dropout here.
        """
        return ops.add(inputs, self.up(self.down(inputs, training=training)))

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "adapter_dim": self.adapter_dim,
            "activation": self.activation,
            "initializer_range": self.initializer_range,
        }
