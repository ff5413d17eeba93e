import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.batches.plans import answers_of_rows, size_batches


def batches(*arguments):
    return [rows.tolist() for rows in size_batches(*arguments)]


def test_largest_first_as_many_as_fit():
    # By hand: 9 x 1 and 2 x 4 fit 9 bytes, two rows at most; 20 is alone.
    assert batches(np.array([1, 20, 4, 4, 1, 9]), 2, 9) == [[1], [5], [2, 3], [0, 4]]
    assert batches(np.array([0, 0, 0]), 2, 9) == [[0, 1], [2]]
    assert batches(np.zeros(0), 2, 9) == []


@given(st.lists(st.integers(0, 50)), st.integers(1, 9), st.integers(1, 99))
def test_every_row_once_and_within_bounds(sizes, most_rows, most_bytes):
    found = batches(np.array(sizes), most_rows, most_bytes)
    assert sorted(row for rows in found for row in rows) == list(range(len(sizes)))
    for rows in found:
        assert len(rows) <= most_rows
        assert len(rows) == 1 or len(rows) * max(sizes[row] for row in rows) <= most_bytes


def test_answers_come_in_the_order_of_the_rows():
    texts, calls = ["a", "bbbb", "", "ccc", "dd"], []

    def run(rows):
        calls.append(rows.tolist())
        some = [texts[row] for row in rows]
        return {"text": np.array(some), "length": np.array([len(text) for text in some])}

    found = answers_of_rows(run, np.array([len(text) for text in texts]), 2, 6)
    assert found == [{"text": text, "length": len(text)} for text in texts]
    assert calls == [[1], [3, 4], [0, 2]]
    assert answers_of_rows(run, np.zeros(0, int), 2) == []
