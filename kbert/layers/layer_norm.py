"""Layer normalization over the last axis."""

from typing import Any

import keras
from keras import ops


@keras.saving.register_keras_serializable("kbert")
class LayerNorm(keras.layers.Layer):
    """gamma (x - mean) / sqrt(variance + epsilon) + beta over the last axis.

    Source: Ba et al. 2016. The arithmetic runs in the compute type of the layer; in float16, whose
    squares overflow at 256, in float32.

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
        """Normalizes (..., D)."""
        x = ops.cast(inputs, "float32") if self.compute_dtype == "float16" else inputs
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        normalized = centred * ops.rsqrt(variance + self.epsilon)
        return ops.cast(normalized, self.compute_dtype) * self.gamma + self.beta

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}
