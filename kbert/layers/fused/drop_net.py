"""Drop-net: random weights for the two attentions of a fused layer."""

from typing import Any

import keras
from keras import ops

from kbert.layers.core.dropout import DrawnSeed


@keras.saving.register_keras_serializable("kbert")
class DropNet(keras.layers.Layer):
    """Draws the weights of two branches, once per layer and batch.

    In training, with U uniform in [0, 1): (1, 0) where U < p / 2, (0, 1) where U > 1 - p / 2, and
    (1/2, 1/2) between; otherwise always (1/2, 1/2).

    Source: Zhu et al. 2020, section 3.3.

    Args:
        rate: p, from 0 to 1; the paper's best is 1.
        seed: int or None, the start of this layer's random sequence.

    Raises:
        ValueError: `rate` is outside its range.

    Attributes:
        forced: two weights that are always returned instead, for tests; normally None.
    """

    forced: tuple[float, float] | None = None

    def __init__(self, rate: float = 1.0, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not 0 <= rate <= 1:
            raise ValueError(f"`rate` must be in [0, 1]. Received: rate={rate}")
        self.rate = rate
        self.seed = seed

    def build(self, input_shape: Any = None) -> None:
        """Creates the state of the random sequence."""
        if self.rate > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed, name="seed_generator")
        self.built = True

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        """Draws the two weights.

        Args:
            inputs: any array; only its dtype is read.
            training: whether weights are drawn.

        Returns:
            Two scalars of the dtype of `inputs`.
        """
        if self.forced is not None:
            first, second = self.forced
        elif not training or self.rate == 0:
            first, second = 0.5, 0.5
        else:
            # Drawn in the graph: a draw in Python would be the same in every step.
            drawn = DrawnSeed(self.seed_generator.next())
            chance = keras.random.uniform((), dtype="float32", seed=drawn)
            half = self.rate / 2
            only_first, only_second = chance < half, chance >= 1 - half
            first = ops.where(only_first, 1.0, ops.where(only_second, 0.0, 0.5))
            second = 1.0 - first
        return ops.cast(first, inputs.dtype), ops.cast(second, inputs.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rate": self.rate, "seed": self.seed}
