"""Forms of raw texts."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.pipelines.text_inputs import TextInputs, has_strings, read_text_inputs

A, B = ["one", "two"], ["three", "four"]


class Column:
    """What is used of a pandas column."""

    index = range(2)

    def __init__(self, values):
        self.values = values

    def to_numpy(self):
        return np.array(self.values, dtype=object)

    def __array__(self, dtype=None, copy=None):
        return self.to_numpy()

    def __iter__(self):
        return iter(self.values)


@pytest.mark.parametrize(
    "x",
    [
        A,
        tuple(A),
        np.array(A),
        np.array(A, dtype=object),
        np.array(A, dtype="S"),
        tf.constant(A),
        Column(A),
        (A,),
        {"text": A},
        {"text_a": np.array(A)},
    ],
)
def test_single_texts(x):
    found = read_text_inputs(x)
    assert found.text_b is None and len(found) == 2
    assert [t.decode() if isinstance(t, bytes) else t for t in found.text_a] == A


@pytest.mark.parametrize(
    "x",
    [
        (A, B),
        (np.array(A), Column(B)),
        {"text_a": A, "text_b": B},
        {"text_b": B, "text_a": A},
    ],
)
def test_pairs(x):
    found = read_text_inputs(x)
    assert list(found.text_a) == A and list(found.text_b) == B


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((2, 3), "int32"),
        {"token_ids": np.zeros((2, 3))},
        tf.data.Dataset.from_tensors(A),
        [np.zeros(3), np.zeros(3)],
        None,
        3,
        [1, 2],
        (A, [["a", "b"], ["c", "d"]]),
    ],
)
def test_something_else(x):
    assert read_text_inputs(x) is None


def test_no_texts():
    for x in ([], np.array([], dtype=object), {"text": []}):
        assert len(read_text_inputs(x)) == 0
    assert len(read_text_inputs(([], [])).text_b) == 0


def test_a_missing_text_does_not_change_what_it_is():
    assert list(read_text_inputs(["a", None]).text_a) == ["a", None]


def test_rows():
    assert TextInputs(A, B)[1:] == TextInputs(["two"], ["four"])
    assert TextInputs(A)[:1] == TextInputs(["one"])


@pytest.mark.parametrize(
    "x, message",
    [
        ("one", "`x` must be a list of texts. Received: x='one', a single one"),
        ({"text": "one"}, "`text` must be a list of texts. Received: text='one'"),
        (
            {"sentence": A},
            'a dict of texts must have the keys "text", or "text_a" and "text_b". '
            r"Received: \['sentence'\]",
        ),
        ({"text_b": A}, r"must have the keys .* Received: \['text_b'\]"),
        ((A, ["three"]), "`text_b` must be as long as `text_a`. Received: 2 and 1"),
        (
            [("one", "three"), ("two", "four")],
            "`x` must be a tuple of two lists, the first texts and the second texts of all pairs. "
            r"Received: a list that begins with \('one', 'three'\)",
        ),
        ([A, B], "`x` must be a tuple of two lists"),
    ],
)
def test_wrong_forms(x, message):
    with pytest.raises(ValueError, match=message):
        read_text_inputs(x)


def test_strings_in_a_dataset():
    strings = tf.data.Dataset.from_tensor_slices(({"text": A}, [0, 1]))
    assert has_strings(strings) and not has_strings(tf.data.Dataset.range(3))
