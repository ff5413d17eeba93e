"""Dropout whose seed can be drawn beforehand, so that a block can be recomputed identically."""

from typing import Any

import keras
from keras import ops


class DrawnSeed(keras.random.SeedGenerator):
    """A seed that was drawn before: `next` returns the same (2,) seed every time.

    Recomputing activations in the backward pass (gradient checkpointing) must drop the units that
    the forward pass dropped; a plain `SeedGenerator` would move on.

    Args:
        value: integer tensor (2,), from `SeedGenerator.next`.
    """

    def __init__(self, value: Any) -> None:
        # The state variable of the base class is not wanted: nothing here changes.
        self.value = value

    def next(self, ordered: bool = True) -> Any:
        """Returns the drawn seed, (2,)."""
        return self.value


@keras.saving.register_keras_serializable("kbert")
class Dropout(keras.layers.Layer):
    """Zeroes units with probability `rate` in training and scales the others by 1 / (1 - rate).

    Source: Srivastava et al. 2014.

    Args:
        rate: probability of dropping, 0 <= rate < 1.
        seed: int or None, the start of this layer's random sequence.

    Raises:
        ValueError: `rate` is outside its range.
    """

    def __init__(self, rate: float, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate < 1:
            raise ValueError(f"`rate` must be in [0, 1). Received: rate={rate}")
        self.rate = rate
        self.seed = seed
        self.supports_masking = True

    def build(self, input_shape: Any = None) -> None:
        """Creates the state of the random sequence, here so that it is named after the layer."""
        if self.rate > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed, name="seed_generator")
        self.built = True

    def draw(self) -> Any:
        """Draws the seed of one call, (2,); None if the rate is 0."""
        return self.seed_generator.next() if self.rate > 0 else None

    def call(self, inputs: Any, training: bool | None = None, seed: Any = None) -> Any:
        """Drops units of `inputs` (any shape).

        Args:
            inputs: float array of any shape.
            training: nothing is dropped unless True.
            seed: a seed from `draw`; None draws a new one.

        Returns:
            An array like `inputs`.
        """
        if not training or self.rate == 0:
            return inputs
        drawn = DrawnSeed(self.draw() if seed is None else seed)
        # Drawn in float32 whatever the type of the units is: a uniform bfloat16 has 128 values, and
        # a rate of 0.1 would become 0.1016.
        chances = keras.random.uniform(ops.shape(inputs), dtype="float32", seed=drawn)
        kept = ops.cast(chances >= self.rate, inputs.dtype)
        # One factor for both passes: the backward pass is a single product with it.
        return inputs * (kept * (1.0 / (1.0 - self.rate)))

    def compute_output_shape(self, input_shape: Any, **kwargs: Any) -> Any:
        """The shape of the input."""
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
