"""Rows in batches, and back in order."""

import numpy as np
import pandas
import pytest

from kbert.serving.loading.row_batches import in_batches, joined_batches, size_of


def test_the_longest_come_first_and_the_order_is_kept():
    asked = []

    def run(columns):
        asked.append(columns["text"])
        letters = np.array([list(t.ljust(max(map(len, columns["text"])))) for t in columns["text"]])
        return {"length": np.array([len(t) for t in columns["text"]]), "letters": letters == "x"}

    texts = ["x", "xxxx", "", "xx", "xxx"]
    found = in_batches(run, {"text": texts}, 2)
    assert asked == [["xxxx", "xxx"], ["xx", "x"], [""]]
    assert found["length"].tolist() == [1, 4, 0, 2, 3]
    assert found["letters"].shape == (5, 4)
    assert found["letters"].sum(1).tolist() == [1, 4, 0, 2, 3]


def test_a_column_of_a_table_counts_by_place():
    column = pandas.Series(["aa", "b", "cccc"], index=[2, 0, 1])
    found = in_batches(lambda c: {"t": np.array(c["text"], object)}, {"text": column}, 2)
    assert found["t"].tolist() == ["aa", "b", "cccc"]


def test_no_rows_tell_the_outputs():
    found = in_batches(lambda c: {"y": np.zeros((len(c["x"]), 3))}, {"x": []}, 8)
    assert found["y"].shape == (0, 3)


def test_the_size_of_a_row():
    assert size_of("abc") == 3 and size_of(b"\xff") == 1 and size_of(["ab", "c"]) == 3
    assert size_of([1, 2, 3]) == 3 and size_of(np.array([[1, 2], [3, 4]])) == 4


def test_batches_are_padded_in_every_dimension():
    one, other = np.ones((1, 2, 1)), np.ones((2, 1, 3))
    joined = joined_batches([one, other])
    assert joined.shape == (3, 2, 3) and joined.sum() == 8.0
    texts = joined_batches([np.array([[b"a"]], object), np.array([[b"b", b"c"]], object)])
    assert texts.tolist() == [[b"a", b""], [b"b", b"c"]]


def test_bad_numbers():
    with pytest.raises(ValueError, match="`batch_size` must be .* least 1. Received: batch_size=0"):
        in_batches(lambda c: {}, {"x": ["a"]}, 0)
