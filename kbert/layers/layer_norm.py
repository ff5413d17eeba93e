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

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Normalizes (..., D); `training` takes the form with the shorter backward pass."""
        if not training:
            return self._normalize(inputs)[0] * self.gamma + self.beta
        # Tensors, not variables: a function with its own gradient may not read variables.
        gamma, beta = ops.multiply(self.gamma, 1.0), ops.multiply(self.beta, 1.0)
        rows = ops.reshape(inputs, (-1, inputs.shape[-1]))
        return ops.reshape(self._trained(rows, gamma, beta), ops.shape(inputs))

    def _normalize(self, inputs: Any) -> tuple[Any, Any]:
        """(..., D) to (x - mean) / deviation (..., D) and 1 / deviation (..., 1)."""
        x = ops.cast(inputs, "float32") if self.compute_dtype == "float16" else inputs
        centred = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centred), axis=-1, keepdims=True)
        scale = ops.rsqrt(variance + self.epsilon)
        return ops.cast(centred * scale, self.compute_dtype), ops.cast(scale, self.compute_dtype)

    def _trained(self, rows: Any, gamma: Any, beta: Any) -> Any:
        """The layer with its gradient written out: half the passes of differentiating each step."""

        @ops.custom_gradient
        def normalize(x: Any, gamma: Any, beta: Any) -> Any:
            normalized, scale = self._normalize(x)  # (R, D), (R, 1)
            mean = 1.0 / x.shape[-1]

            def gradient(*args: Any, upstream: Any = None) -> Any:
                (upstream,) = args if upstream is None else (upstream,)
                weighted = upstream * normalized  # (R, D)
                # Row means of upstream * gamma, alone and times the normalized rows, as products
                # with gamma: no further array of (R, D).
                shift = ops.matmul(upstream, gamma[:, None]) * (scale * mean)  # (R, 1)
                slope = ops.matmul(weighted, gamma[:, None]) * (scale * mean)  # (R, 1)
                inner = upstream * gamma * scale - normalized * slope - shift
                ones = ops.ones_like(scale)  # (R, 1): sums over rows as products, in one read
                sums = (ops.matmul(ops.transpose(ones), a)[0] for a in (weighted, upstream))
                return inner, *sums

            return normalized * gamma + beta, gradient

        return normalize(rows, gamma, beta)

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "epsilon": self.epsilon}
