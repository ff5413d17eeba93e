"""The position-wise feed-forward network."""

from typing import Any

import keras

from kbert.layers.core.linear import Linear


@keras.saving.register_keras_serializable("kbert")
class FeedForward(keras.layers.Layer):
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
        self.intermediate_dim = intermediate_dim
        self.activation = activation
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.supports_masking = True
        self.intermediate = Linear(
            intermediate_dim,
            activation=activation,
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="intermediate",
        )

    def build(self, input_shape: Any) -> None:
        """Creates W1 (D, I) and W2 (I, D) for an input (..., D)."""
        self.output_linear = Linear(
            input_shape[-1],
            kernel_initializer=keras.initializers.serialize(self.kernel_initializer),
            dtype=self.dtype_policy,
            name="output",
        )
        self.intermediate.build(input_shape)
        self.output_linear.build((*input_shape[:-1], self.intermediate_dim))
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Maps (..., D) to (..., D).

        Args:
            inputs: (..., D).
            training: passed to the activation; there is no dropout here.
        """
        return self.output_linear(self.intermediate(inputs, training=training))

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "intermediate_dim": self.intermediate_dim,
            "activation": self.activation,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
        }
