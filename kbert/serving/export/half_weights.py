"""Weights that half precision holds exactly, stored in half their bytes.

Adapters and heads that come as half-precision files are float32 once they are loaded. An export may
store them in half precision again: it computes with the very same numbers.
"""

from typing import Any

import numpy as np
import tensorflow as tf

# Of smaller ones the graph's nodes cost what the numbers save.
_LEAST_NUMBERS = 2048


def is_stored_as_half(variable: Any) -> bool:
    """Whether a weight is a float32 matrix of at least 2,048 numbers, each one of float16's.

    Args:
        variable: A Keras variable.
    """
    if len(variable.shape) != 2 or variable.dtype != "float32":
        return False
    numbers = np.asarray(variable)
    if numbers.size < _LEAST_NUMBERS:
        return False
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and so is not equal
        return bool(np.array_equal(numbers.astype("float16").astype("float32"), numbers))


class HalfWeight:
    """A weight as an export stores it.

    Args:
        variable: The Keras variable, of which `is_stored_as_half` holds.
    """

    def __init__(self, variable: Any) -> None:
        halves = np.asarray(variable).astype("float16")
        name = variable.path.replace(":", "_")
        self._halves = tf.Variable(halves, trainable=False, name=f"{name}/halves")

    def matrix(self) -> tf.Tensor:
        """All of it as float32, as graph code."""
        return tf.cast(self._halves, tf.float32)

    def rows(self, ids: Any) -> tf.Tensor:
        """The rows of a table, (...) -> (..., D) float32, as graph code."""
        return tf.cast(tf.gather(self._halves, ids), tf.float32)
