"""Int8 quantization of large weights, with a scale per row or column.

Symmetric: weight = scale * code, code in [-127, 127], scale = the largest magnitude / 127. A
matrix (in, out) has a scale for each column, the outputs; a table of embeddings one for each row,
so that a row can be looked up before it is dequantized. Source: Jacob et al. 2018
(arXiv:1712.05877), section 2.1, with zero point 0; per channel as Krishnamoorthi 2018
(arXiv:1806.08342), section 3.1.
"""

from typing import Any

import numpy as np
import tensorflow as tf

_MOST = 127
# Below this a scale costs about as much as it saves, and biases are not matrices.
_LEAST_NUMBERS = 2048
_TABLE = "embeddings"


def is_stored_as_int8(variable: Any) -> bool:
    """Returns whether a weight is large enough: a float matrix of at least 2,048 numbers.

    Args:
        variable: A Keras variable.
    """
    numbers = int(np.prod(variable.shape))
    return len(variable.shape) == 2 and numbers >= _LEAST_NUMBERS and "float" in variable.dtype


def int8_codes(matrix: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Quantizes a matrix to codes and scales.

    Args:
        matrix: (in, out), or a table (V, D).
        name: The name of the variable, which is "embeddings" for a table.

    Returns:
        int8 of the same shape, and float32 (1, out) or (V, 1).
    """
    wide = np.asarray(matrix, "float32")
    axis = 1 if name == _TABLE else 0
    scales = np.abs(wide).max(axis=axis, keepdims=True) / np.float32(_MOST)
    scales = np.where(scales > 0, scales, np.float32(1)).astype("float32")
    codes = np.clip(np.rint(wide / scales), -_MOST, _MOST).astype("int8")
    return codes, scales


def rounded_to_int8(matrix: np.ndarray, name: str) -> np.ndarray:
    """Quantizes and dequantizes a matrix, to float32; for the arguments see `int8_codes`."""
    codes, scales = int8_codes(matrix, name)
    return codes.astype("float32") * scales


class Int8Weight:
    """A weight stored as int8.

    Args:
        variable: The Keras variable.
    """

    def __init__(self, variable: Any) -> None:
        codes, scales = int8_codes(np.asarray(variable), variable.name)
        name = variable.path.replace(":", "_")
        self._codes = tf.Variable(codes, trainable=False, name=f"{name}/codes")
        self._scales = tf.Variable(scales, trainable=False, name=f"{name}/scales")

    def matrix(self) -> tf.Tensor:
        """Returns the whole matrix as float32, as graph code."""
        return tf.cast(self._codes, tf.float32) * self._scales

    def rows(self, ids: Any) -> tf.Tensor:
        """Looks up rows of a table, (...) -> (..., D) float32, as graph code."""
        codes = tf.gather(self._codes, ids)
        return tf.cast(codes, tf.float32) * tf.gather(self._scales, ids)
