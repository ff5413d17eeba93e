"""Dense layers whose weights are a direction and a length for each output."""

from typing import Any

import keras
from keras import ops

from kbert.layers.residual import ShapeKeepingLayer


@keras.saving.register_keras_serializable("kbert")
class WeightNormLinear(ShapeKeepingLayer):
    """y = x W + b over the last axis, where a column of W is norm * direction / |direction|.

    Source: Salimans and Kingma 2016. New columns have the length sqrt(`gain`).

    Args:
        units: U, width of the output.
        gain: variance of an output, over that of an input, at the beginning.
    """

    def __init__(self, units: int, gain: float = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"`units` must be at least 1. Received: units={units}")
        self.units, self.gain = units, gain

    def build(self, input_shape: Any) -> None:
        """Creates the directions (D, U), their lengths (U,) and b (U,) for an input (..., D)."""
        shape, start = (input_shape[-1], self.units), keras.initializers.RandomNormal(stddev=1.0)
        self.direction = self.add_weight(name="direction", shape=shape, initializer=start)
        start = keras.initializers.Constant(self.gain**0.5)
        self.norm = self.add_weight(name="norm", shape=(self.units,), initializer=start)
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.built = True

    def scale(self) -> Any:
        """Returns norm / |direction| of each output, (U,)."""
        direction, norm = self.direction, self.norm
        if self.compute_dtype in ("bfloat16", "float16"):
            direction, norm = (ops.cast(one, "float32") for one in (direction, norm))
        return ops.cast(norm / ops.sqrt(ops.sum(ops.square(direction), axis=0)), self.compute_dtype)

    def call(self, inputs: Any, scale: Any = None) -> Any:
        """Maps inputs (..., D) to (..., U).

        Args:
            inputs: (..., D).
            scale: `scale()`, which a loop computes once; broadcast to (..., U).
        """
        flat = ops.reshape(inputs, (-1, inputs.shape[-1]))
        found = ops.matmul(flat, self.direction)
        found = ops.reshape(found, (*ops.shape(inputs)[:-1], self.units))
        return found * (self.scale() if scale is None else scale) + self.bias

    def compute_output_shape(self, input_shape: Any = None, *args: Any, **kwargs: Any) -> Any:
        """(..., D) -> (..., U)."""
        return (*input_shape[:-1], self.units)
