"""Layer normalization over the last axis."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("kbert")
class LayerNorm(keras.layers.Layer):
    """gamma (x - mean) / sqrt(variance + epsilon) + beta over the last axis.

    Source: Ba et al. 2016. The arithmetic runs in float32 under bfloat16 and float16 too, and its
    result is rounded once: squares overflow in float16 from 256 on, and what bfloat16 loses in a
    mean and a variance goes through every layer above.

    Args:
        epsilon: added to the variance.
    """

    def __init__(self, epsilon: float = 1e-12, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.epsilon = epsilon
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates gamma and beta, (D,), for an input (..., D)."""
        shape = (input_shape[-1],)
        self.gamma = self.add_weight(name="gamma", shape=shape, initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape, initializer="zeros")
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Normalizes the last axis.

        Args:
            inputs: (..., D).
        """
        x, gamma, beta = inputs, self.gamma, self.beta
        if self.compute_dtype in ("bfloat16", "float16"):
            x, gamma, beta = (ops.cast(one, "float32") for one in (x, gamma, beta))
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        normalized = centred * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normalized * gamma + beta, self.compute_dtype)

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}
