"""Weights in half precision: only where nothing is lost, and then nothing is."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.precision.small_weights import HalfWeight, is_stored_as_half


@pytest.fixture(scope="module")
def halves() -> np.ndarray:
    return np.random.default_rng(2).normal(size=(50, 64)).astype("float16").astype("float32")


def test_in_a_graph(halves: np.ndarray):
    stored = HalfWeight(keras.Variable(halves, name="embeddings"))
    found = tf.function(stored.matrix)()
    assert found.dtype == tf.float32
    np.testing.assert_array_equal(found, halves)
    ids = np.array([[3, 49], [0, 3]])
    np.testing.assert_array_equal(tf.function(stored.rows)(ids), halves[ids])


@pytest.mark.parametrize(
    "number, expected",
    [
        (0.5, True),
        (-65504.0, True),  # the largest
        (2.0**-24, True),  # the smallest
        (0.1, False),
        (65536.0, False),
        (2.0**-25, False),
        (float("nan"), False),  # a broken weight is stored as it is
    ],
)
def test_one_number_that_is_no_half_is_enough(halves: np.ndarray, number: float, expected: bool):
    changed = halves.copy()
    changed[7, 7] = number
    assert is_stored_as_half(keras.Variable(changed)) is expected


def test_only_large_matrices_are_stored_so():
    for shape, dtype, expected in (
        ((64, 32), "float32", True),
        ((64, 31), "float32", False),
        ((4096,), "float32", False),
        ((64, 64), "bfloat16", False),
        ((64, 64), "int32", False),
    ):
        assert is_stored_as_half(keras.Variable(np.zeros(shape), dtype=dtype)) is expected
