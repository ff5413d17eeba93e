"""Weights of eight bits: codes by hand, and the error that the scheme allows."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.precision.rounding import Rounding
from kbert.serving.precision.small_weights import (
    Int8Weight,
    int8_codes,
    is_stored_as_int8,
    rounded_to_int8,
)


def test_codes_by_hand():
    # The largest of a column becomes 127 or -127; a column of zeros stays one.
    codes, scales = int8_codes(np.array([[1.27, -0.5, 0.0], [0.01, 0.25, 0.0]]), "kernel")
    np.testing.assert_allclose(scales, [[0.01, 0.5 / 127, 1.0]], rtol=1e-6)
    assert codes.tolist() == [[127, -127, 0], [1, 64, 0]] and codes.dtype == np.int8
    codes, scales = int8_codes(np.array([[1.27, 0.02], [-2.54, 1.0]]), "embeddings")
    np.testing.assert_allclose(scales, [[0.01], [0.02]], rtol=1e-6)
    assert codes.tolist() == [[127, 2], [-127, 50]]


def test_no_weight_moves_by_more_than_half_a_step():
    matrix = np.random.default_rng(1).normal(size=(40, 60))
    for name, axis in (("kernel", 0), ("embeddings", 1)):
        step = np.abs(matrix).max(axis=axis, keepdims=True) / 127
        rounded = rounded_to_int8(matrix, name)
        assert np.all(np.abs(rounded - matrix) <= step / 2 * 1.0001)
        # What is rounded already stays: an export stores what its model computes with.
        np.testing.assert_allclose(rounded_to_int8(rounded, name), rounded, rtol=1e-6)


def test_smoothed_rows_and_seven_bits():
    # Rows times 4 and 1/2: 2.52 and 0.63; then the largest code is 63.
    smoothing = np.array([[4.0], [0.5]], "float32")
    matrix = np.array([[0.63, -0.1], [1.26, 2.52]])
    codes, scales = int8_codes(matrix, "kernel", Rounding(smoothing))
    np.testing.assert_allclose(scales, [[0.04, 0.02]], rtol=1e-6)
    assert codes.tolist() == [[63, -20], [16, 63]]
    rounded = rounded_to_int8(matrix, "kernel", Rounding(smoothing))
    np.testing.assert_allclose(rounded, [[0.63, -0.1], [1.28, 2.52]], rtol=1e-6)
    # What is rounded already stays: factors that are powers of two round nothing.
    again = rounded_to_int8(rounded, "kernel", Rounding(smoothing))
    np.testing.assert_array_equal(again, rounded)
    codes, _ = int8_codes([[0.64, -0.1], [1.27, 2.54]], "kernel", Rounding(lowest=0.0))
    assert codes.tolist() == [[64, -5], [127, 127]]
    stored = Int8Weight(keras.Variable(matrix, name="kernel"), Rounding(smoothing))
    np.testing.assert_array_equal(tf.function(stored.matrix)(), rounded)
    np.testing.assert_allclose(stored.sums, [0.04 * 79, 0.02 * 43], rtol=1e-6)
    # A table has a scale, and so a sum, for each row: codes 63 and -10, 32 and 63.
    table = keras.Variable([[0.63, -0.1], [0.64, 1.26]], name="embeddings")
    stored = Int8Weight(table, Rounding())
    np.testing.assert_allclose(stored.sums, [0.01 * 53, 0.02 * 95], rtol=1e-6)


def test_in_a_graph():
    variable = keras.Variable(np.random.default_rng(2).normal(size=(50, 64)), name="embeddings")
    stored = Int8Weight(variable)
    expected = rounded_to_int8(np.asarray(variable), "embeddings")
    np.testing.assert_array_equal(tf.function(stored.matrix)(), expected)
    ids = np.array([[3, 49], [0, 3]])
    np.testing.assert_array_equal(tf.function(stored.rows)(ids), expected[ids])


def test_only_large_matrices_are_stored_so():
    for shape, dtype, expected in (
        ((64, 32), "float32", True),
        ((64, 31), "float32", False),
        ((4096,), "float32", False),
        ((64, 64), "int32", False),
    ):
        assert is_stored_as_int8(keras.Variable(np.zeros(shape), dtype=dtype)) is expected


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_refused(value: float):
    matrix = np.ones((3, 2))
    matrix[1, 1] = value
    message = "`precision` must not be int8 for weights that are not finite. Received: kernel of"
    with pytest.raises(ValueError, match=message):
        int8_codes(matrix, "kernel")
