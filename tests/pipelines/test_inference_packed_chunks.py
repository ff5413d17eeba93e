import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.pipelines.inference import packed_chunks
from kbert.text.sequences.packing import PackedText


def packed(lengths):
    """Rows of ids that tell their row: row i holds i + 1, lengths[i] times."""
    lengths = np.array(lengths, "int32")
    width = int(lengths.max(initial=2))
    real = np.arange(width) < lengths[:, None]
    ids = np.where(real, np.arange(1, len(lengths) + 1)[:, None], 0).astype("int32")
    return PackedText(
        *(tf.constant(x) for x in (ids, real.astype("int32"), real, lengths, lengths < 0))
    )


def told(inputs):
    """The row's number, its real tokens, the sum of its segment ids, and rows and width."""
    rows, width = (tf.fill(tf.shape(inputs["token_ids"])[:1], n) for n in shape_of(inputs))
    columns = [
        tf.reduce_max(inputs["token_ids"], axis=1),
        tf.reduce_sum(tf.cast(inputs["padding_mask"], tf.int32), axis=1),
        tf.reduce_sum(inputs["segment_ids"], axis=1),
        rows,
        width,
    ]
    return tf.cast(tf.stack(columns, axis=1), tf.float32)


def shape_of(inputs):
    shape = tf.shape(inputs["token_ids"])
    return shape[0], shape[1]


@given(st.lists(st.integers(1, 12), max_size=9), st.integers(1, 40))
def test_every_row_comes_back_in_its_place_and_little_is_padding(lengths, cells):
    found = packed_chunks(told, packed(lengths), 5, cells).numpy()
    assert found.shape == (len(lengths), 5)
    assert found[:, 0].tolist() == list(range(1, len(lengths) + 1))
    assert found[:, 1].tolist() == found[:, 2].tolist() == lengths
    # No group is longer than its longest row, and none has more cells than allowed but a single.
    for _, _, _, rows, width in found.tolist():
        assert rows * width <= cells or rows == 1
    for width in set(found[:, 4].tolist()):
        assert max(n for n, w in zip(lengths, found[:, 4].tolist()) if w == width) == width


def test_by_hand():
    # Longest first: 6 and 5 share 12 cells; 3, 2 and 2 share 9.
    found = packed_chunks(told, packed([2, 6, 3, 5, 2]), 5, 12).numpy()
    assert found[:, 3:].tolist() == [[3, 3], [2, 6], [3, 3], [2, 6], [3, 3]]


@pytest.mark.parametrize("function", [tf.function, lambda f: f])
def test_no_rows(function):
    found = function(lambda: packed_chunks(told, packed([]), 5))()
    assert found.shape == (0, 5)
