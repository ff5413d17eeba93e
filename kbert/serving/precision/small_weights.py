"""Weights as an export stores them: large matrices as int8, others as half where nothing is lost.

Int8: weight = scale * code, code in [-127, 127], scale = the largest magnitude / 127; both may be
63 where `integer_products` multiplies. A matrix (in, out) has a scale for each column, the outputs;
a table of embeddings one for each row, so that a row can be looked up before it is dequantized.
Source: Jacob et al. 2018 (arXiv:1712.05877), section 2.1, with zero point 0; per channel as
Krishnamoorthi 2018 (arXiv:1806.08342), section 3.1.

Half: adapters and heads of half-precision files are float32 once they are loaded. Where float16
holds a weight exactly, an export stores that, and computes with the same numbers.
"""

from typing import Any

import numpy as np
import tensorflow as tf

from kbert.pipelines.inference import read_once
from kbert.serving.precision.rounding import Rounding

_MOST = 127
# For smaller ones the scales, or the graph's nodes, cost about as much as is saved.
_LEAST_NUMBERS = 2048
_TABLE = "embeddings"


def _is_large_matrix(variable: Any) -> bool:
    return len(variable.shape) == 2 and int(np.prod(variable.shape)) >= _LEAST_NUMBERS


def is_stored_as_int8(variable: Any) -> bool:
    """Returns whether a Keras variable is a float matrix of at least 2,048 numbers."""
    return _is_large_matrix(variable) and "float" in variable.dtype


def is_stored_as_half(variable: Any) -> bool:
    """Returns whether a Keras variable is a float32 matrix, as large, that float16 has exactly."""
    if not _is_large_matrix(variable) or variable.dtype != "float32":
        return False
    numbers = np.asarray(variable)
    with np.errstate(over="ignore"):  # overflow becomes infinite, and so is not equal
        return bool(np.array_equal(numbers.astype("float16").astype("float32"), numbers))


def int8_codes(
    matrix: np.ndarray, name: str, rounding: Rounding | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Quantizes a matrix (in, out), or a table (V, D), whose `name` is "embeddings".

    Returns int8 of the same shape and float32 scales (1, out) or (V, 1); of the matrix with its
    rows smoothed, if `rounding` has it so.
    """
    wide = np.asarray(matrix, "float32") * _smoothing(rounding)
    if not np.isfinite(wide).all():  # they would become numbers that look like others
        raise ValueError(
            f"`precision` must not be int8 for weights that are not finite. Received: {name} of "
            f"shape {wide.shape} with NaN or infinity"
        )
    most = np.float32(_MOST if rounding is None else rounding.most)
    scales = np.abs(wide).max(axis=1 if name == _TABLE else 0, keepdims=True) / most
    scales = np.where(scales > 0, scales, np.float32(1)).astype("float32")
    return np.clip(np.rint(wide / scales), -most, most).astype("int8"), scales


def rounded_to_int8(
    matrix: np.ndarray, name: str, rounding: Rounding | None = None
) -> np.ndarray:
    """Quantizes and dequantizes a matrix, to float32; see `int8_codes`."""
    codes, scales = int8_codes(matrix, name, rounding)
    return codes.astype("float32") * scales / _smoothing(rounding)


def _smoothing(rounding: Rounding | None) -> Any:
    return 1 if rounding is None or rounding.smoothing is None else rounding.smoothing


class HalfWeight:
    """A Keras variable stored as float16."""

    def __init__(self, variable: Any) -> None:
        self._halves = _stored(np.asarray(variable).astype("float16"), variable, "halves")

    def matrix(self) -> tf.Tensor:
        """Returns the whole matrix as float32, as graph code."""
        return tf.cast(self._halves, tf.float32)

    def rows(self, ids: Any) -> tf.Tensor:
        """Looks up rows of a table, (...) -> (..., D) float32, as graph code."""
        return tf.cast(tf.gather(read_once(self._halves), ids), tf.float32)


class Int8Weight:
    """A Keras variable stored as int8, with its scales; see `int8_codes`.

    `rounding` is of the matrices of `kbert.serving.precision.rounding.integer_matrices` alone.
    """

    def __init__(self, variable: Any, rounding: Rounding | None = None) -> None:
        codes, scales = int8_codes(np.asarray(variable), variable.name, rounding)
        self.codes = _stored(codes, variable, "codes")
        self.scales = _stored(scales, variable, "scales")
        self.rounding = Rounding() if rounding is None else rounding
        self.is_table = variable.name == _TABLE
        if rounding is not None:  # nothing multiplies the others, as most tables of embeddings
            sums = codes.sum(axis=1 if self.is_table else 0, dtype="int64")
            self.sums = (sums * scales.ravel()).astype("float32")

    def matrix(self) -> tf.Tensor:
        """Returns the whole matrix as float32, as graph code."""
        return tf.cast(self.codes, tf.float32) * self.scales / _smoothing(self.rounding)

    def rows(self, ids: Any) -> tf.Tensor:
        """Looks up rows of a table, (...) -> (..., D) float32, as graph code."""
        codes = tf.gather(read_once(self.codes), ids)
        return tf.cast(codes, tf.float32) * tf.gather(read_once(self.scales), ids)


def _stored(numbers: np.ndarray, variable: Any, part: str) -> tf.Variable:
    name = variable.path.replace(":", "_")
    return tf.Variable(numbers, trainable=False, name=f"{name}/{part}")
