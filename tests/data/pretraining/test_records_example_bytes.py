"""Serialized examples: against protocol buffers themselves."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.pretraining.records import example_bytes


def reference(columns):
    """The same with TensorFlow's classes, one row at a time."""
    found = []
    for row in range(len(next(iter(columns.values())))):
        example = tf.train.Example()
        for name, values in columns.items():
            feature = example.features.feature[name]
            is_float = values.dtype.kind == "f"
            numbers = feature.float_list if is_float else feature.int64_list
            numbers.value.extend(values[row].tolist())
        found.append(example.SerializeToString(deterministic=True))
    return found


def test_by_hand():
    """One feature "a" of 1 and 300, which is 44 + 2 * 128."""
    packed = b"\x01\xac\x02"
    feature = b"\x1a\x05\x0a\x03" + packed
    entry = b"\x0a\x01a" + b"\x12\x07" + feature
    expected = b"\x0a\x0e" + b"\x0a\x0c" + entry
    assert example_bytes({"a": np.array([[1, 300]])}) == [expected]


sizes = st.sampled_from([1, 2, 127, 128, 129, 16_383, 16_384, 30_521, 2**21, 2**28, 2**31 - 1])


@given(st.integers(1, 4), st.integers(1, 200), sizes, st.integers(0, 2**32 - 1))
def test_any_numbers(rows, length, largest, seed):
    draw = np.random.default_rng(seed)
    columns = {
        "b": draw.integers(0, largest + 1, (rows, length)),
        "a" * draw.integers(1, 200): np.full((rows, 1), largest, "int32"),
        "\u00e4": draw.normal(size=(rows, length)).astype("float32"),
        "c": draw.integers(0, 2, (rows, length)).astype("int32"),
    }
    assert example_bytes(columns) == reference(columns)


def test_what_cannot_be_written():
    for number in (-1, 2**31):
        with pytest.raises(ValueError, match=r"`columns` must hold integers from 0 .*Received: "):
            example_bytes({"a": np.array([[1, number]])})
