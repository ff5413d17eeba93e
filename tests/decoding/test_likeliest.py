"""The likeliest tokens by pieces of the vocabulary, against a sort of all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kbert.decoding.likeliest import largest_entries, log_sum_exp, taken


@settings(max_examples=60, deadline=None)
@given(
    arrays("float32", (2, 3, 96), elements=st.floats(-5, 5, width=16)),
    st.integers(1, 6),
)
def test_the_largest_are_those_of_a_sort(values, count):
    best, places = map(np.asarray, largest_entries(values, count))
    expected = -np.sort(-values, axis=-1)[..., :count]
    np.testing.assert_array_equal(best, expected)  # equal values may stand in any order
    np.testing.assert_array_equal(np.take_along_axis(values, places, axis=-1), expected)
    assert all(len(set(row)) == count for row in places.reshape(-1, count).tolist())


@pytest.mark.parametrize("size", [2, 16, 31, 97, 1000, 10_000, 32_000])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_vocabularies_of_all_sizes(size, count):
    count = min(count, size)
    values = np.random.default_rng(size).normal(size=(2, 2, size)).astype("float32")
    values[0, 0, size // 2 :] = -np.inf
    values[0, 1] = values[0, 1, 0]
    best, places = map(np.asarray, largest_entries(values, count))
    np.testing.assert_array_equal(best, -np.sort(-values, axis=-1)[..., :count])
    np.testing.assert_array_equal(np.take_along_axis(values, places, axis=-1), best)
    assert len(set(places[1, 1].tolist())) == count


def test_the_sum_needs_one_softmax():
    values = np.random.default_rng(1).normal(scale=30.0, size=(3, 2, 50)).astype("float32")
    index = values.argmax(axis=-1).astype("int32")
    found = log_sum_exp(values, values.max(axis=-1), index)
    wide = values.astype("float64")
    most = wide.max(axis=-1, keepdims=True)
    expected = np.log(np.exp(wide - most).sum(axis=-1)) + most[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_entries_are_taken_of_each_hypothesis():
    values = np.arange(24, dtype="float32").reshape(2, 3, 4)
    index = np.array([[[0, 3], [1, 1], [2, 0]], [[3, 3], [0, 1], [2, 2]]], "int32")
    expected = [[[0, 3], [5, 5], [10, 8]], [[15, 15], [16, 17], [22, 22]]]
    assert np.asarray(taken(values, index)).tolist() == expected


@pytest.mark.parametrize("size", [12, 96])
def test_no_rows(size):
    best, places = largest_entries(np.zeros((0, 2, size), "float32"), 3)
    assert best.shape == places.shape == (0, 2, 3)
