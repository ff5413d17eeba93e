"""The types in which logits and losses are computed: float32, or more."""

from typing import Any

import keras
from keras import ops


def wide_dtype(dtype: str) -> str:
    """"float64" for "float64", and else "float32".

    Args:
        dtype: the type that a model computes in.
    """
    return "float64" if dtype == "float64" else "float32"


def widened(logits: Any) -> Any:
    """Logits of any float type in float32; those in float64 stay as they are.

    Args:
        logits: array of any shape.
    """
    logits = ops.convert_to_tensor(logits)
    return ops.cast(logits, wide_dtype(keras.backend.standardize_dtype(logits.dtype)))
