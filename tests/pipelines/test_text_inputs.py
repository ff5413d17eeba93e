"""Forms of raw texts."""

import math
import re
from collections.abc import Sequence
from types import GeneratorType

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from kbert.pipelines.text_inputs import (
    TextInputs,
    checked_inputs,
    listed,
    read_single_texts,
    read_text_inputs,
)
from tests.small_pipelines import small_classifier

A, B = ["one", "two"], ["three", "four"]


class Column(Sequence):
    """What Hugging Face's datasets call a column: a sequence that is read as it is asked."""

    def __init__(self, values):
        self.values = values

    def __len__(self):
        return len(self.values)

    def __getitem__(self, row):
        return self.values[row]


class Table:
    """What is used of their data sets: names, and a column by its name."""

    def __init__(self, columns):
        self.columns = columns
        self.column_names = list(columns)

    def __getitem__(self, name):
        return Column(self.columns[name])


FRAME = pd.DataFrame({"id": [7, 8], "text": A, "text_a": A, "text_b": B, "other": B})


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
        pd.Series(A),
        pd.Series(A, dtype="category"),
        FRAME[["id", "text"]],
        Table({"text": A, "label": [0, 1]}),
        (A,),
        (pd.Series(A),),
        {"text": pd.Series(A)},
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
        (pd.Series(A), pd.Series(B)),
        FRAME,
        Table({"text_b": B, "text_a": A}),
        {"text_a": pd.Series(A), "text_b": Column(B)},
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
    for x in ([], np.array([], dtype=object), np.array([]), {"text": []}):
        assert len(read_text_inputs(x)) == 0
    assert len(read_text_inputs(([], [])).text_b) == 0


@pytest.mark.parametrize(
    "x, message",
    [
        (["a", None], "`x[1]` must be str or bytes. Received: None"),
        ([None], "`x[0]` must be str or bytes. Received: None"),
        (pd.Series(["a", None]), "`x[1]` must be str or bytes. Received: nan"),
        (np.array(["a", 3], object), "`x[1]` must be str or bytes. Received: 3"),
        ({"text": [float("nan")]}, "`text[0]` must be str or bytes. Received: nan"),
        ((A, ["b", None]), "`text_b[1]` must be str or bytes. Received: None"),
    ],
)
def test_a_missing_text_is_named(x, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        read_text_inputs(x)


def test_columns_of_a_table_that_the_model_reads():
    """Pairs come before single texts, unless the model reads single ones; the rest is left out."""
    assert read_text_inputs(FRAME, True).text_b == B
    assert read_text_inputs(FRAME, False) == TextInputs(A)
    assert read_text_inputs(FRAME[["text_a", "text_b"]], False) == TextInputs(A)


@pytest.mark.parametrize(
    "pair, x, message",
    [
        (True, A, "`x` must be pairs of texts.* pair=True. Received: single texts"),
        (True, {"text": A}, "`x` must be pairs of texts"),
        (False, (A, B), "`x` must be single texts: .* pair=False. Received: pairs; a model of"),
        (False, {"text_a": A, "text_b": B}, "`x` must be single texts"),
        (
            True,
            FRAME[["text", "other"]],
            '`x` must have the columns "text_a" and "text_b". Received: a DataFrame with the '
            r"columns \['text', 'other'\]",
        ),
        (False, Table({"a": A}), 'must have the columns "text", or "text_a". Received: a Table'),
        (None, pd.DataFrame(columns=[0, 1]), r"a DataFrame with the columns \['0', '1'\]"),
    ],
)
def test_what_the_model_does_not_read(pair, x, message):
    with pytest.raises(ValueError, match=message):
        read_text_inputs(x, pair)


def test_several_tables_are_refused():
    class Splits(dict):
        column_names = {"train": ["text"], "test": ["text"]}

    splits = listed(Splits(train=FRAME))
    with pytest.raises(ValueError, match=r"must be one split .* of \['test', 'train'\]"):
        read_text_inputs(splits)


def test_iterators_of_texts_become_lists():
    assert listed(text for text in A) == A
    assert listed((iter(A), map(str.upper, B))) == (A, ["THREE", "FOUR"])
    assert listed({"text": iter(A)}) == {"text": A}
    assert listed(iter([])) == [] and listed(iter([0, 1])) == [0, 1]
    assert listed(A) is A
    with pytest.raises(ValueError, match="`x` must be a tuple of two lists"):
        read_text_inputs(listed(zip(A, B)))


def test_an_iterator_of_batches_goes_on_as_one():
    batches = [(np.zeros(2), np.ones(2)), (np.ones(2), np.zeros(2))]
    found = listed(iter(batches))
    assert isinstance(found, GeneratorType) and list(found) == batches


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
            '`x`, a dict of texts, must have the keys "text", or "text_a" and "text_b". '
            r"Received: \['sentence'\]",
        ),
        ({"text_b": A}, r"`x`, a dict of texts, must have the keys .* Received: \['text_b'\]"),
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


def test_single_texts_under_a_name():
    frame = pd.DataFrame({"source": A, "text": B})
    assert read_single_texts(frame, "source", "text") == A
    assert read_single_texts(frame) == B
    assert read_single_texts({"source": A}, "source", "text") == A
    assert read_single_texts({"token_ids": np.zeros((2, 3))}) is None
    with pytest.raises(ValueError, match='must have the keys "text". Received: .*source'):
        read_single_texts({"source": A})
    with pytest.raises(ValueError, match="`x` must be one list of texts. Received: a tuple of 2"):
        read_single_texts((A, B))


@pytest.mark.parametrize(
    "x, received",
    [
        (None, "None"),
        (3, "3"),
        (np.float32(2.5), ".*2.5"),
        ([3, 4], "a list that begins with 3"),
        ([[3, 4], [5]], r"a list that begins with \[3, 4\]"),
    ],
)
def test_inputs_that_are_neither_texts_nor_arrays(x, received):
    message = f"`x` must be texts, or a dict with token ids in arrays. Received: {received}"
    with pytest.raises(ValueError, match=message):
        checked_inputs(x)


@pytest.mark.parametrize("size", [0, -1, "8", 2.0])
def test_sizes_of_batches(size):
    with pytest.raises(ValueError, match=f"`batch_size` must be .*, or None. Received: {size!r}"):
        checked_inputs(["a"], size)


def test_inputs_that_are_taken():
    arrays = {"token_ids": np.zeros((1, 2), "int32")}
    assert checked_inputs(arrays, np.int64(8))["token_ids"] is arrays["token_ids"]
    assert checked_inputs(iter(["a", "b"])) == ["a", "b"] and checked_inputs([]) == []
    for missing in (None, math.nan):  # one that is missing is told by its place
        assert checked_inputs([missing, "a"]) == [missing, "a"]
        assert checked_inputs([missing]) == [missing]


@pytest.mark.parametrize("kind", ["U", "O"])
def test_texts_as_a_column_vector(kind):
    texts = np.array([["a"], ["b"]], kind)
    model = small_classifier()
    for way in (model, model.predict, lambda x: model.fit(x, ["no", "yes"])):
        with pytest.raises(ValueError, match=r"`x` must be texts of the shape \(n,\). .*\(2, 1\)"):
            way(texts)
