"""The likeliest continuations by pieces of the vocabulary, against a sort of all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from kbert.decoding.scores import best_continuations, in_pieces, log_sum_exp


def check(logits, offsets, count):
    """The same numbers as a sort gives, at places that have them, each place once."""
    found = best_continuations(in_pieces(logits, count), offsets, count)
    best, parents, tokens = map(np.asarray, found)
    rows, hypotheses, size = logits.shape
    every = (logits + offsets[:, :, None]).reshape(rows, -1)
    expected = -np.sort(-every, axis=-1)[:, :count]
    real = min(count, hypotheses * size)
    np.testing.assert_array_equal(best[:, :real], expected)
    assert np.all(best[:, real:] == -np.inf)
    places = parents * size + tokens
    np.testing.assert_array_equal(np.take_along_axis(every, places[:, :real], axis=-1), expected)
    assert all(len(set(row)) == real for row in places[:, :real].tolist())


@given(
    arrays("float32", (2, 3, 96), elements=st.floats(-5, 5, width=16)),
    arrays("float32", (2, 3), elements=st.floats(-5, 5, width=16)),
    st.integers(1, 6),
)
def test_the_best_are_those_of_a_sort(logits, offsets, count):
    check(logits, offsets, count)


@pytest.mark.parametrize("size", [2, 16, 31, 97, 1000, 10_000, 32_000])
@pytest.mark.parametrize("count", [1, 2, 10])
def test_vocabularies_of_all_sizes(size, count):
    draw = np.random.default_rng(size)
    logits = draw.normal(size=(2, 2, size)).astype("float32")
    logits[0, 0, size // 2 :] = -np.inf
    logits[0, 1] = logits[0, 1, 0]
    check(logits, draw.normal(size=(2, 2)).astype("float32"), count)


def test_large_vocabularies_are_cut():
    logits = np.zeros((1, 2, 10_000), "float32")
    assert in_pieces(logits, 10).maxima.shape[-1] < 1000
    assert in_pieces(logits[..., :9973], 10).maxima.shape[-1] == 9973  # a prime number


@pytest.mark.parametrize("size", [50, 1000])
def test_the_sum_needs_one_softmax(size):
    values = np.random.default_rng(1).normal(scale=30.0, size=(3, 2, size)).astype("float32")
    found = log_sum_exp(in_pieces(values, 4))
    wide = values.astype("float64")
    most = wide.max(axis=-1, keepdims=True)
    expected = np.log(np.exp(wide - most).sum(axis=-1)) + most[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("size", [12, 960])
def test_where_nothing_can_follow_nothing_is_found(size):
    logits = np.full((1, 1, size), -np.inf, "float32")
    pieces = in_pieces(logits, 2)
    total = np.asarray(log_sum_exp(pieces))
    assert total.tolist() == [[0.0]]
    best, _, _ = best_continuations(pieces, -total, 2)
    assert np.asarray(best).tolist() == [[-np.inf, -np.inf]]


@pytest.mark.parametrize("size", [12, 960])
def test_no_rows(size):
    pieces = in_pieces(np.zeros((0, 2, size), "float32"), 3)
    assert log_sum_exp(pieces).shape == (0, 2)
    found = best_continuations(pieces, np.zeros((0, 2), "float32"), 3)
    assert [column.shape for column in found] == [(0, 3)] * 3
