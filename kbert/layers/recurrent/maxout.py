"""The deep output of recurrent decoders."""

from typing import Any

import keras
from keras import ops

from kbert.layers.linear import Linear
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
        self.units = units
        self.linear = Linear(2 * units, dtype=self.dtype_policy, name="linear")

    def build(self, input_shape: Any) -> None:
        """Creates W (D, 2 U) and b (2 U,) for an input (..., D)."""
        self.linear.build(input_shape)
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Maps inputs (..., D) to (..., U)."""
        pairs = self.linear(inputs)
        return ops.max(ops.reshape(pairs, (*ops.shape(pairs)[:-1], self.units, 2)), axis=-1)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """(..., D) -> (..., U)."""
        return (*input_shape[:-1], self.units)
