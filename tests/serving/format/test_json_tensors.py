"""Batches as TF Serving's REST interface has them."""

import base64
import json
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.format.json_tensors import from_json, to_json


def test_texts():
    batch = np.array([["ä".encode(), b""], [b"\xff", b"a\0"]], object)
    # base64 of ff and of 61 00, by hand from RFC 4648.
    value = [["ä", ""], [{"b64": "/w=="}, {"b64": "YQA="}]]
    assert to_json(batch) == value
    found = from_json(value, tf.string)
    assert found.dtype == object and found.tolist() == batch.tolist()


def test_numbers():
    assert to_json(np.array([0.1, 1e-30, 3.0], np.float32)) == [0.1, 1e-30, 3.0]
    assert json.dumps(to_json(np.array([np.nan, np.inf, -np.inf], np.float32))) == (
        "[NaN, Infinity, -Infinity]"
    )
    assert to_json(np.array([[True, False]])) == [[True, False]]
    assert to_json(np.array([2**62])) == [2**62]
    half = np.array([0.5, 3.0]).astype(tf.bfloat16.as_numpy_dtype)
    assert to_json(half) == [0.5, 3.0]
    for dtype in (tf.float32, tf.int64, tf.bfloat16):
        assert from_json([1, 0], dtype).dtype == dtype.as_numpy_dtype
    assert from_json([True, False], tf.bool).tolist() == [True, False]
    # NumPy alone would make numbers of these.
    wrong = (([1.5], tf.int32), (["1"], tf.float32), ([True], tf.int32), ([1], tf.bool))
    for value, dtype in wrong:
        with pytest.raises(ValueError, match=f"elements of type {dtype.name}"):
            from_json(value, dtype)


def test_float32_comes_back_as_it_went():
    batch = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    text = json.dumps(to_json(batch))
    assert (from_json(json.loads(text), tf.float32) == batch).all()


def test_no_rows():
    assert to_json(np.zeros((0, 3), np.float32)) == []
    assert from_json([], tf.string).shape == (0,)
    assert from_json([[], []], tf.string).shape == (2, 0)


@pytest.mark.parametrize(
    "value, dtype",
    [
        ([["a"], ["b", "c"]], tf.string),
        ([["a", "b"], ["c"], ["d", "e", "f"]], tf.string),  # six, as three rows of two have
        ([["a"], "b"], tf.string),
        ([1], tf.string),
        ([{"b64": "YQ==", "more": 1}], tf.string),
        (["a"], tf.float32),
        ([[1], [2, 3]], tf.int32),
        ([2**40], tf.int32),
    ],
)
def test_what_fits_no_tensor_is_refused(value: object, dtype: tf.DType):
    with pytest.raises(ValueError, match="the value must be lists of one shape"):
        from_json(value, dtype)


@pytest.mark.parametrize(
    "value, dtype, words",
    [
        ([None], tf.string, "null, which is no text"),
        ([["a"], [True]], tf.string, "true, which is no text"),
        ([[1, "2"]], tf.int32, '"2", which is no int32'),
        ([[1, 2.5]], tf.int32, "2.5, which is no int32"),
        ([0.5, None], tf.float32, "null, which is no float32"),
        ([1], tf.bool, "1, which is no bool"),
        ([[1, 2], [3]], tf.int32, "lists of different lengths"),
        ([2**70], tf.int32, "elements of type object"),
    ],
)
def test_the_first_value_that_does_not_fit_is_shown(value: object, dtype: tf.DType, words: str):
    with pytest.raises(ValueError, match=f"Received: {words}$"):
        from_json(value, dtype)


def test_base64_as_other_programs_write_it():
    """In lines, or without padding: TF Serving takes both."""
    photograph = bytes(range(256))
    code = base64.b64encode(photograph).decode()
    for one in (code, base64.encodebytes(photograph).decode(), code.rstrip("=")):
        assert from_json([{"b64": one}], tf.string).tolist() == [photograph]
    assert from_json([{"b64": ""}], tf.string).tolist() == [b""]


@pytest.mark.parametrize(
    "code, words",
    [
        ("%", "1 characters, beginning with '%'"),
        ("YQ=", "must be base64"),
        ("Y", "must be base64"),
        ("ä" * 9999, "9999 characters, beginning with 'ää"),
        (None, "must be a string of base64. Received: NoneType"),
        (5, "must be a string of base64. Received: int"),
        (["YQ=="], "must be a string of base64. Received: list"),
    ],
)
def test_what_is_no_base64_is_told(code: object, words: str):
    with pytest.raises(ValueError, match='each "b64" must be') as caught:
        from_json(["a", {"b64": code}], tf.string)
    assert words in str(caught.value) and len(str(caught.value)) < 200


def test_a_shape_that_is_only_promised_makes_no_memory():
    """The first of 3,000 rows promises 3,000 columns, which would be 72 MB."""
    rows = [["a"] * 3000, *([] for _ in range(2999))]
    tracemalloc.start()
    with pytest.raises(ValueError, match="lists of different lengths"):
        from_json(rows, tf.string)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000


def test_float64_keeps_its_digits():
    numbers = np.array([0.1, 1e300, 123456789.123])
    assert to_json(numbers) == [0.1, 1e300, 123456789.123]
    assert (from_json(to_json(numbers), tf.float64) == numbers).all()
