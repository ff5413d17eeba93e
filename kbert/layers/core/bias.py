"""A bias alone, for products whose matrix is another layer's."""

from typing import Any

import keras


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
            inputs: (..., D).
        """
        return inputs + self.bias

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units}
