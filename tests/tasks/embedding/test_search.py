"""Search by blocks against all similarities at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kbert.tasks.embedding import search as module
from kbert.tasks.embedding.search import search, similarity

A = np.array([[1.0, 0.0], [3.0, 4.0]])
B = np.array([[2.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def test_similarities_by_hand():
    np.testing.assert_allclose(similarity(A, B), [[1, 0, -1], [0.6, 0.8, -0.6]], atol=1e-6)
    np.testing.assert_allclose(similarity(A, B, "dot"), [[2, 0, -1], [6, 4, -3]])
    np.testing.assert_allclose(similarity(A, np.zeros((1, 2))), [[0], [0]])


# Small whole numbers: products are exact, and many are equal.
NUMBERS = st.integers(-2, 2).map(float)


@given(st.data(), st.integers(1, 12), st.integers(1, 9))
def test_blocks_and_equal_scores(data, k, block_rows):
    rows = data.draw(st.integers(1, 11))
    queries = data.draw(hnp.arrays("float32", (3, 2), elements=NUMBERS))
    matrix = data.draw(hnp.arrays("float32", (rows, 2), elements=NUMBERS))
    places, scores = search(queries, matrix, k, "dot", block_rows)
    whole = queries @ matrix.T
    expected = np.argsort(-whole, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(places, expected)
    np.testing.assert_array_equal(scores, np.take_along_axis(whole, expected, 1))


def test_many_queries_and_a_file_of_vectors(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_QUERIES", 7)
    draw = np.random.default_rng(1)
    queries, matrix = draw.normal(size=(20, 5)), draw.normal(size=(50, 5)).astype("float32")
    matrix.tofile(tmp_path / "vectors")
    mapped = np.memmap(tmp_path / "vectors", "float32", "r", shape=(50, 5))
    places, scores = search(queries, mapped, 4, block_rows=8)
    whole = similarity(queries, matrix)
    np.testing.assert_array_equal(places, np.argsort(-whole, axis=1)[:, :4])
    np.testing.assert_allclose(scores, -np.sort(-whole, axis=1)[:, :4], atol=1e-6)


def test_nothing_to_search():
    assert search(np.zeros((0, 2)), B).places.shape == (0, 3)
    assert search(A, np.zeros((0, 2))).places.shape == (2, 0)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: search(A, B, 0), "`k` must be at least 1. Received: k=0"),
        (lambda: search(A, B, block_rows=0), "`block_rows` must be at least 1. Received: block_ro"),
        (lambda: search(A, B, kind="l2"), r"`kind` must be one of \['cosine', 'dot'\]"),
        (lambda: similarity(A, B[:, :1]), r"two matrices of one width. .*\(2, 2\) and \(3, 1\)"),
        (lambda: search(A * np.nan, B), "must hold finite numbers. Received: NaN or inf"),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()
