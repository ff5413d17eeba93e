"""Dense layers over the last axis, and their activations.

A dense layer always multiplies two matrices: with rank-2 operands and a separate bias,
TensorFlow's graph rewriting fuses product, bias and exact GELU into one oneDNN call; a rank-3
product is not fused.
"""

import math
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

from kbert.gradients import own_gradient
from kbert.layers.residual import ConfiguredLayer, ShapeKeepingLayer

_ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "gelu": lambda x: ops.gelu(x, approximate=False),  # exact, with erf
    "gelu_approximate": lambda x: ops.gelu(x, approximate=True),  # with tanh
    "quick_gelu": lambda x: x * ops.sigmoid(1.702 * x),  # Hendrycks and Gimpel 2016, section 2
    "relu": ops.relu,
    "tanh": ops.tanh,
    "silu": lambda x: x * ops.sigmoid(x),  # TensorFlow's has a gradient that is never freed
}

# What those that are bounded below never return less than, a little less than their minimum.
LOWEST = {
    "gelu": -0.17,
    "gelu_approximate": -0.1701,
    "quick_gelu": -0.1637,
    "relu": 0.0,
    "silu": -0.2785,
}


def activation_name(name: str | None) -> str | None:
    """Checks and returns the name of an activation, or None."""
    if name is not None and name not in _ACTIVATIONS:
        raise ValueError(
            f"`activation` must be one of {sorted(_ACTIVATIONS)} or None. "
            f"Received: activation={name!r}"
        )
    return name


def activate(x: Any, name: str | None, training: bool | None = None) -> Any:
    """Applies an activation to an array of any shape; None returns it unchanged.

    Training uses the form with the cheaper backward pass; the values are the same.
    """
    if name is None:
        return x
    if name == "gelu" and training:
        return _gelu_with_short_gradient(x)
    return _ACTIVATIONS[name](x)


@own_gradient
def _gelu_with_short_gradient(x: Any) -> Any:
    """Exact GELU, x Phi(x) (Hendrycks and Gimpel 2016), keeping Phi for the backward pass.

    The derivative Phi(x) + x phi(x) needs one exponential; differentiating the erf formula step by
    step takes nine passes over the widest activations of the network.
    """
    cdf = (ops.erf(x * math.sqrt(0.5)) + 1.0) * 0.5

    def gradient(*args: Any, upstream: Any = None) -> Any:
        (upstream,) = args if upstream is None else (upstream,)
        density = ops.exp(ops.square(x) * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
        return upstream * (cdf + x * density)

    return x * cdf, gradient


@keras.saving.register_keras_serializable("kbert")
class Linear(ShapeKeepingLayer):
    """y = activation(x W + b) over the last axis.

    Args:
        units: width of the output.
        activation: name of an activation or None, see `activation_name`.
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

    def build(self, input_shape: Any) -> None:
        """Creates W (D, units) and b (units,) for an input (..., D)."""
        shape, start = (input_shape[-1], self.units), self.kernel_initializer
        self.kernel = self.add_weight(name="kernel", shape=shape, initializer=start)
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(name="bias", shape=(self.units,), initializer="zeros")
        self.built = True

    def call(self, inputs: Any, training: bool | None = None, added: Any = None) -> Any:
        """Maps `inputs` (..., D) to (..., units).

        Args:
            inputs: (..., D).
            training: whether it trains, which only concerns the activation.
            added: (rows, units), added before the activation; or None.
        """
        # (..., D) -> (rows, D): one matrix product for all positions
        outputs = ops.matmul(ops.reshape(inputs, (-1, inputs.shape[-1])), self.kernel)
        if self.bias is not None:
            outputs = ops.add(outputs, self.bias)
        if added is not None:
            outputs = ops.add(outputs, added)
        outputs = activate(outputs, self.activation, training)
        if len(inputs.shape) == 2:
            return outputs
        return ops.reshape(outputs, (*ops.shape(inputs)[:-1], self.units))

    def compute_output_shape(self, input_shape: Any = None, **kwargs: Any) -> Any:
        """(..., D) -> (..., units)."""
        return (*input_shape[:-1], self.units)


def normal_linear(
    units: int, initializer_range: float, activation: str | None = None, **kwargs: Any
) -> Linear:
    """Makes a `Linear` with BERT's truncated normal initializer, of this standard deviation."""
    initializer = keras.initializers.TruncatedNormal(stddev=initializer_range)
    serialized = keras.initializers.serialize(initializer)
    return Linear(units, activation, kernel_initializer=serialized, **kwargs)


@keras.saving.register_keras_serializable("kbert")
class Bias(ConfiguredLayer):
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
        """Maps `inputs` (..., units) to the same shape."""
        return inputs + self.bias

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape


@keras.saving.register_keras_serializable("kbert")
class FeedForward(ShapeKeepingLayer):
    """activation(x W1 + b1) W2 + b2, position by position.

    Source: Vaswani et al. 2017, section 3.3.

    Args:
        intermediate_dim: width between the two products.
        activation: name of the activation between them.
        kernel_initializer: Keras initializer of W1 and W2.
    """

    def __init__(
        self,
        intermediate_dim: int,
        activation: str = "gelu",
        kernel_initializer: Any = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.intermediate_dim, self.activation = intermediate_dim, activation
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.intermediate = self._linear(intermediate_dim, activation, "intermediate")

    def _linear(self, units: int, activation: str | None, name: str) -> Linear:
        initializer = keras.initializers.serialize(self.kernel_initializer)
        return Linear(units, activation, True, initializer, dtype=self.dtype_policy, name=name)

    def build(self, input_shape: Any) -> None:
        """Creates W1 (D, I) and W2 (I, D) for an input (..., D)."""
        self.output_linear = self._linear(input_shape[-1], None, "output")
        self.intermediate.build(input_shape)
        self.output_linear.build((*input_shape[:-1], self.intermediate_dim))
        self.built = True

    def call(self, inputs: Any, training: bool | None = None, adapter: Any = None) -> Any:
        """Maps `inputs` (..., D) to the same shape.

        Args:
            inputs: (..., D).
            training: whether it trains, which only concerns the activation.
            adapter: a `BlockAdapter`, which may add to the products; or None.
        """
        if adapter is None:
            return self.output_linear(self.intermediate(inputs, training=training))
        more = adapter.added("intermediate", inputs)
        inner = self.intermediate(inputs, training=training, added=more)
        return self.output_linear(inner, added=adapter.added("output", inner))
