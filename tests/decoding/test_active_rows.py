import numpy as np
import pytest
import tensorflow as tf

from kbert.decoding.active_rows import (
    enough_finished,
    longest_of,
    of_parents,
    of_unknown_number,
    rows_leave,
    taken_rows,
    without_finished,
    written_rows,
)


def test_entries_of_each_row():
    column = np.arange(12).reshape(2, 3, 2)
    found = of_parents(column, np.array([[2, 2], [0, 1]]))
    assert np.asarray(found).tolist() == [[[4, 5], [4, 5]], [[6, 7], [8, 9]]]


def test_rows_of_a_structure():
    values = {"a": np.arange(3), "b": (np.arange(6).reshape(3, 2),)}
    found = taken_rows(values, np.array([2, 0]))
    assert np.asarray(found["a"]).tolist() == [2, 0]
    assert np.asarray(found["b"][0]).tolist() == [[4, 5], [0, 1]]


def test_answers_are_put_into_their_places():
    found = written_rows({"a": tf.zeros((3, 1))}, {"a": [[5.0]], "b": 1}, np.array([1]))
    assert found["a"].numpy().tolist() == [[0], [5], [0]]


def test_the_longest_is_at_least_one():
    assert int(longest_of(tf.constant([2, 7]), None)) == 7
    assert int(longest_of(tf.zeros((0,), tf.int32), None)) == 1
    assert longest_of(tf.constant([2, 7]), 9) == 9


def test_rows_leave_where_enough_are_finished():
    assert rows_leave()
    done = np.zeros(16, bool)
    # One of sixteen is less than an eighth: it stays.
    done[3] = True
    assert not enough_finished(done)
    done[9] = True
    assert enough_finished(done) and enough_finished(np.ones(1, bool))
    assert not enough_finished(np.zeros(1, bool))
    values = {"done": done, "row": np.arange(16), "x": np.arange(16, dtype="float32")[:, None]}
    answers = {"x": tf.fill((16, 1), -1.0)}
    kept, written = without_finished(values, answers)
    assert np.asarray(kept["row"]).tolist() == [r for r in range(16) if r not in (3, 9)]
    assert written["x"][:, 0].numpy().tolist() == [
        float(r) if r in (3, 9) else -1.0 for r in range(16)
    ]


@pytest.mark.parametrize("count", [0, 3])
def test_a_graph_does_not_know_how_many_indices_there_are(count):
    @tf.function
    def freed():
        found = of_unknown_number(tf.constant(np.arange(count, dtype="int32")))
        assert found.shape.as_list() == [None]
        return found

    assert freed().numpy().tolist() == list(range(count))
