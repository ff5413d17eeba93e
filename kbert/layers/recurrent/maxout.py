"""The deep output of recurrent decoders."""

from typing import Any

import keras
from keras import ops

from kbert.layers.residual import ConfiguredLayer


@keras.saving.register_keras_serializable("kbert")
class Maxout(ConfiguredLayer):
    """The larger of each two neighbours of x W + b.

    Source: Goodfellow et al. 2013; Cho et al. 2014 and Bahdanau et al. 2014, in the appendices.

    Args:
        units: U, width of the output, half of W's.
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"`units` must be at least 1. Received: units={units}")
        self.units = units

    def build(self, input_shape: Any) -> None:
        """Creates W (D, 2 U) and b (2 U,) for an input (..., D)."""
        shape = (input_shape[-1], 2 * self.units)
        self.kernel = self.add_weight(name="kernel", shape=shape, initializer="glorot_uniform")
        self.bias = self.add_weight(name="bias", shape=shape[1:], initializer="zeros")
        self.built = True

    def call(self, inputs: Any, constant: Any = None) -> Any:
        """Maps inputs (..., D) to (..., U).

        Args:
            inputs: (..., D), or (B, T, D - C) with a constant.
            constant: (B, C), behind the inputs of all T steps, or None.
        """
        width = inputs.shape[-1]
        flat = ops.matmul(ops.reshape(inputs, (-1, width)), self.kernel[:width])
        pairs = ops.reshape(flat + self.bias, (*ops.shape(inputs)[:-1], 2 * self.units))
        if constant is not None:
            pairs = pairs + ops.matmul(constant, self.kernel[width:])[:, None]
        return ops.max(ops.reshape(pairs, (*ops.shape(inputs)[:-1], self.units, 2)), axis=-1)

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """(..., D) -> (..., U)."""
        return (*input_shape[:-1], self.units)
