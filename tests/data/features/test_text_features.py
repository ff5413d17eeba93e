"""Batches of states, by hand: the states of token t are (t, -t)."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.data.features.text_features import TextFeatures

STATES = np.array([[t, -t] for t in range(1, 7)], "float16")


def features() -> TextFeatures:
    """Texts of tokens 4 5 6, 1, none, and 1 again; of two shards, with tokens 1 2 and 3 to 6."""
    shard_of, starts = np.array([1, 0, 0, 0]), np.array([1, 0, 0, 0])
    return TextFeatures([STATES[:2], STATES[2:]], shard_of, starts, np.array([3, 1, 0, 1], "int32"))


def test_a_batch():
    found = features().batch(np.array([1, 0, 2]))
    expected = [
        [[1, -1], [0, 0], [0, 0]],
        [[4, -4], [5, -5], [6, -6]],
        [[0, 0], [0, 0], [0, 0]],
    ]
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, expected)


def test_a_batch_with_a_row_of_padding():
    found = features().batch([3, -1])
    np.testing.assert_array_equal(found, [[[1, -1]], [[0, 0]]])


@pytest.mark.parametrize("rows, shape", [([], (0, 0)), ([2, -1], (2, 0))])
def test_batches_without_tokens(rows, shape):
    assert features().batch(rows).shape == (*shape, 2)


def test_no_texts_at_all():
    none = np.zeros(0, "int32")
    empty = TextFeatures([np.zeros((0, 2), "float32")], none, none, none)
    assert len(empty) == 0
    np.testing.assert_array_equal(empty.batch([-1]), np.zeros((1, 0, 2)))


def test_the_states_stay_as_they_are():
    before = STATES.copy()
    found = features().batch([0, 1])
    found[:] = 9
    np.testing.assert_array_equal(STATES, before)


def test_lengths_and_sizes():
    assert len(features()) == 4
    assert features().lengths.tolist() == [3, 1, 0, 1]
    assert features().dtype == np.float16 and features().hidden_dim == 2


@pytest.mark.parametrize("rows", [[0, 4], [-2, 0]])
def test_rows_that_are_no_texts(rows):
    with pytest.raises(ValueError, match=rf"must be in \[-1, 4\). Received: {min(rows)} to"):
        features().batch(rows)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_a_mapped_file(tmp_path, dtype):
    numbers = STATES.astype(tf.as_dtype(dtype).as_numpy_dtype)
    numbers.tofile(tmp_path / "states")
    mapped = np.memmap(tmp_path / "states", numbers.dtype, "r", shape=(6, 2))
    found = TextFeatures([mapped], [0, 0], [3, 0], [3, 1]).batch([1, 0])
    assert type(found) is np.ndarray and found.dtype == numbers.dtype
    expected = [[[1, -1], [0, 0], [0, 0]], [[4, -4], [5, -5], [6, -6]]]
    np.testing.assert_array_equal(found.astype("float32"), expected)


def test_a_dataset_can_be_made_of_it():
    one = features()

    def batches():
        for rows in ([0, 1], [3, 2, 1]):
            yield one.batch(rows)

    spec = tf.TensorSpec((None, None, 2), tf.float16)
    dataset = tf.data.Dataset.from_generator(batches, output_signature=spec)
    shapes = [tuple(states.shape) for states in dataset]
    assert shapes == [(2, 3, 2), (3, 1, 2)]
