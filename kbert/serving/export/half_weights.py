"""Weights that half precision represents exactly, stored in half their bytes.

Adapters and heads of half-precision files are float32 once they are loaded. An export may store
them in half precision again: it computes with exactly the same numbers.
"""

from typing import Any

import numpy as np
import tensorflow as tf

# For smaller ones the graph's nodes cost as much as is saved.
_LEAST_NUMBERS = 2048


def is_stored_as_half(variable: Any) -> bool:
    """Returns whether a weight is a float32 matrix of at least 2,048 numbers exact in float16.

    Args:
        variable: A Keras variable.
    """
    if len(variable.shape) != 2 or variable.dtype != "float32":
        return False
    numbers = np.asarray(variable)
    if numbers.size < _LEAST_NUMBERS:
        return False
    with np.errstate(over="ignore"):  # overflow becomes infinite, and so is not equal
        return bool(np.array_equal(numbers.astype("float16").astype("float32"), numbers))


class HalfWeight:
    """A weight stored as float16.

    Args:
        variable: A Keras variable for which `is_stored_as_half` is True.
    """

    def __init__(self, variable: Any) -> None:
        halves = np.asarray(variable).astype("float16")
        name = variable.path.replace(":", "_")
        self._halves = tf.Variable(halves, trainable=False, name=f"{name}/halves")

    def matrix(self) -> tf.Tensor:
        """Returns the whole matrix as float32, as graph code."""
        return tf.cast(self._halves, tf.float32)

    def rows(self, ids: Any) -> tf.Tensor:
        """Looks up rows of a table, (...) -> (..., D) float32, as graph code."""
        return tf.cast(tf.gather(self._halves, ids), tf.float32)
