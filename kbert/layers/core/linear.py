"""A dense layer over the last axis that always multiplies two matrices.

With rank-2 operands and a separate bias, TensorFlow's graph rewriting fuses product, bias and
exact GELU into one oneDNN call; a rank-3 product is not fused.
"""

from typing import Any

import keras
from keras import ops

from kbert.layers.core.activations import activate, activation_name


@keras.saving.register_keras_serializable("kbert")
class Linear(keras.layers.Layer):
    """y = activation(x W + b) over the last axis.

    Args:
        units: width of the output.
        activation: name of an activation (see `kbert.layers.core.activations`) or None.
        use_bias: whether b exists.
        kernel_initializer: Keras initializer of W.

    Raises:
        ValueError: `units` is not positive, or the activation is unknown.
    """

    def __init__(
        self,
        units: int,
        activation: str | None = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"`units` must be at least 1. Received: units={units}")
        self.units = units
        self.activation = activation_name(activation)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True

    def build(self, input_shape: Any) -> None:
        """Creates W (D, units) and b (units,) for an input (..., D)."""
        self.kernel = self.add_weight(
            name="kernel",
            shape=(input_shape[-1], self.units),
            initializer=self.kernel_initializer,
        )
        self.bias = (
            self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
            if self.use_bias
            else None
        )
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps (..., D) to (..., units).

        Args:
            inputs: (..., D).
            training: passed to the activation; there is no dropout here.
        """
        # (..., D) -> (rows, D): one matrix product for all positions
        outputs = ops.matmul(ops.reshape(inputs, (-1, inputs.shape[-1])), self.kernel)
        if self.bias is not None:
            outputs = ops.add(outputs, self.bias)
        outputs = activate(outputs, self.activation, training)
        if len(inputs.shape) == 2:
            return outputs
        return ops.reshape(outputs, (*ops.shape(inputs)[:-1], self.units))

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """(..., D) -> (..., units)."""
        return (*input_shape[:-1], self.units)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "units": self.units,
            "activation": self.activation,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }


def normal_linear(
    units: int, initializer_range: float, activation: str | None = None, **kwargs: Any
) -> Linear:
    """Makes a `Linear` with BERT's truncated normal initializer.

    Args:
        units: width of the output.
        initializer_range: standard deviation of the initializer.
        activation: name of an activation, or None.
        **kwargs: `name` and `dtype`.
    """
    initializer = keras.initializers.TruncatedNormal(stddev=initializer_range)
    serialized = keras.initializers.serialize(initializer)
    return Linear(units, activation, kernel_initializer=serialized, **kwargs)


@keras.saving.register_keras_serializable("kbert")
class Bias(keras.layers.Layer):
    """x + b over the last axis.

    Args:
        units: width of the last axis.
    """

    def __init__(self, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units

    def build(self, input_shape: Any = None) -> None:
        """Creates b (units,)."""
        self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.built = True

    def call(self, inputs: Any) -> Any:
        """Maps (..., units) to the same shape.

        Args:
            inputs: (..., units).
        """
        return inputs + self.bias

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}
