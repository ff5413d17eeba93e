"""Tensors as bytes."""

import io

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.loading.session_loader import (
    read_count,
    read_name,
    read_tensor,
    write_count,
    write_name,
    write_tensor,
)


def written(array: np.ndarray, dtype: tf.DType) -> bytes:
    stream = io.BytesIO()
    write_tensor(stream, array, dtype)
    return stream.getvalue()


def test_strings_byte_by_byte():
    # By hand from the format: DT_STRING is 7 (types.proto), rank 1, one dimension of 2.
    array = np.array([b"a\0", "ä"], dtype=object)
    head = b"\x07\0\0\0" b"\x01\0\0\0" b"\x02\0\0\0\0\0\0\0"
    body = b"\x02\0\0\0\0\0\0\0a\0" b"\x02\0\0\0\0\0\0\0\xc3\xa4"
    assert written(array, tf.string) == head + body


def test_a_lone_surrogate_is_written_as_the_replacement_character():
    assert written(np.array(["a\ud800"], object), tf.string) == written(
        np.array(["a\ufffd"], object), tf.string
    )


def test_numbers_byte_by_byte():
    # By hand: DT_INT32 is 3, rank 2, dimensions 1 and 2.
    head = b"\x03\0\0\0" b"\x02\0\0\0" b"\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0"
    found = written(np.array([[1, -1]], np.int32), tf.int32)
    assert found == head + b"\x01\0\0\0\xff\xff\xff\xff"


@pytest.mark.parametrize(
    "array",
    [
        np.array([[b"", b"\0\0"], [b"\xff", b"x" * 1000]], dtype=object),
        np.zeros((0,), dtype=object),
        np.zeros((0, 3), np.float32),
        np.array(2.5, np.float64),
        np.arange(24, dtype=np.int64).reshape(2, 3, 4).transpose(2, 0, 1),  # not contiguous
        np.array([True, False]),
        np.array([1.5, -2.0], tf.bfloat16.as_numpy_dtype),
    ],
)
def test_what_is_written_is_read(array: np.ndarray):
    dtype = tf.string if array.dtype == object else tf.dtypes.as_dtype(array.dtype)
    found = read_tensor(io.BytesIO(written(array, dtype)))
    assert found.dtype == array.dtype
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()


def test_names_and_counts():
    stream = io.BytesIO()
    write_name(stream, "tensor:0")
    write_count(stream, -2)
    stream.seek(0)
    assert read_name(stream) == "tensor:0"
    assert read_count(stream) == -2


def test_a_stream_that_ends_is_told():
    content = written(np.ones((2, 2), np.float32), tf.float32)
    for size in (0, 3, 10, len(content) - 1):
        with pytest.raises(EOFError, match="more bytes. Received"):
            read_tensor(io.BytesIO(content[:size]))
