"""One vector of all tokens of a sequence."""

from typing import Any

import keras
from keras import ops

from kbert.layers.residual import ConfiguredLayer

POOLINGS = ("mean", "max")


@keras.saving.register_keras_serializable("kbert")
class TokenPooling(ConfiguredLayer):
    """The mean of the states of all real tokens, or the largest number of each dimension.

    Args:
        pooling: "mean" or "max".

    Raises:
        ValueError: `pooling` is neither.
    """

    def __init__(self, pooling: str = "mean", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if pooling not in POOLINGS:
            raise ValueError(
                f"`pooling` must be one of {list(POOLINGS)}. Received: pooling={pooling!r}"
            )
        self.pooling = pooling

    def call(self, inputs: Any, padding_mask: Any = None) -> Any:
        """Maps `inputs` (B, T, D) to (B, D).

        Args:
            inputs: (B, T, D).
            padding_mask: bool (B, T), True for a real token; None if all are.
        """
        return pool(inputs, padding_mask, self.pooling)

    def compute_output_shape(self, input_shape: Any, *args: Any, **kwargs: Any) -> Any:
        """(B, T, D) -> (B, D)."""
        return (input_shape[0], input_shape[-1])


def pool(states: Any, padding_mask: Any, pooling: str) -> Any:
    """Returns the mean or the maximum (B, D) of states (B, T, D) over the real tokens of each row.

    `padding_mask` is bool (B, T), or None where all are real; a row without any becomes 0.
    """
    if padding_mask is None:
        return ops.mean(states, axis=1) if pooling == "mean" else ops.max(states, axis=1)
    real = padding_mask[..., None]
    if pooling == "mean":
        # Sums of long texts overflow float16, and bfloat16 counts to 256.
        dtype = keras.backend.standardize_dtype(states.dtype)
        wide = "float64" if dtype == "float64" else "float32"
        # Padded states are undefined, so they are replaced, not multiplied by 0.
        total = ops.sum(ops.where(real, ops.cast(states, wide), 0.0), axis=1)
        count = ops.sum(ops.cast(real, wide), axis=1)
        return ops.cast(total / ops.maximum(count, 1.0), dtype)
    highest = ops.max(ops.where(real, states, float("-inf")), axis=1)
    return ops.where(ops.any(real, axis=1), highest, 0.0)
