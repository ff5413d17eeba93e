"""Pieces of bounded size: what goes together, and that nothing is lost."""

import functools
from collections.abc import Callable

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.text.graph_functions import map_in_chunks, places_in_chunks

OUTPUTS = [tf.TensorSpec((None,), tf.int32), tf.TensorSpec((None, 2), tf.float32)]


def indices_and_sizes(chosen: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """The indices, and for each chunk one row: how many they are, twice."""
    size = tf.cast(tf.size(chosen), tf.float32)
    return chosen, tf.reshape(tf.stack([size, size]), (1, 2))


@tf.function(
    input_signature=[tf.TensorSpec((None,), tf.int32), tf.TensorSpec((), tf.int32)],
    autograph=False,
)
def in_a_graph(lengths: tf.Tensor, cells: tf.Tensor) -> list[tf.Tensor]:
    return map_in_chunks(indices_and_sizes, lengths, cells, OUTPUTS)


def expected_chunks(lengths: list[int], cells: int) -> list[list[int]]:
    """Longest first, in their order where equal; a chunk ends before it would be too large."""
    chunks: list[list[int]] = []
    for index in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        width = lengths[chunks[-1][0]] if chunks else 0
        if not chunks or (len(chunks[-1]) + 1) * width > cells:
            chunks.append([])
        chunks[-1].append(index)
    return chunks


@given(st.lists(st.integers(1, 12), max_size=20), st.integers(1, 40))
def test_chunks_are_those_by_hand(lengths: list[int], cells: int) -> None:
    indices, sizes = in_a_graph(tf.constant(lengths, tf.int32), tf.constant(cells))
    expected = expected_chunks(lengths, cells)
    assert indices.numpy().tolist() == [index for chunk in expected for index in chunk]
    np.testing.assert_array_equal(sizes, [[len(chunk)] * 2 for chunk in expected] or sizes)
    assert sizes.shape == (len(expected), 2)
    for chunk in expected:
        assert len(chunk) == 1 or len(chunk) * max(lengths[i] for i in chunk) <= cells


def test_example_by_hand() -> None:
    # 9 is longer than a chunk and stays alone; 4 * 2 fit into 8; 1 is the rest.
    indices, sizes = in_a_graph(tf.constant([1, 4, 9, 3]), tf.constant(8))
    assert indices.numpy().tolist() == [2, 1, 3, 0]
    np.testing.assert_array_equal(sizes, [[1, 1], [2, 2], [1, 1]])


@pytest.mark.parametrize("lengths", [[], [3], [2, 5, 5, 1]])
def test_without_a_graph(lengths: list[int]) -> None:
    lengths = tf.constant(lengths, tf.int32)
    found = map_in_chunks(indices_and_sizes, lengths, 10, OUTPUTS)
    for one, other in zip(found, in_a_graph(lengths, tf.constant(10)), strict=True):
        np.testing.assert_array_equal(one, other)


@functools.cache
def several_at_once(at_once: int) -> Callable[[tf.Tensor], list[tf.Tensor]]:
    @tf.function(input_signature=[tf.TensorSpec((None,), tf.int32)], autograph=False)
    def several(lengths: tf.Tensor) -> list[tf.Tensor]:
        return map_in_chunks(indices_and_sizes, lengths, 10, OUTPUTS, at_once)

    return several


@settings(max_examples=20)
@given(st.lists(st.integers(1, 12), max_size=20), st.integers(2, 5))
def test_several_at_once_come_in_the_same_order(lengths: list[int], at_once: int) -> None:
    given_lengths = tf.constant(lengths, tf.int32)
    expected = in_a_graph(given_lengths, tf.constant(10))
    for one, other in zip(several_at_once(at_once)(given_lengths), expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_outputs_go_back_to_the_order_of_the_sequences():
    lengths = tf.constant([3, 9, 3, 1, 9, 4])
    chosen, _ = in_a_graph(lengths, tf.constant(9))
    # By hand: longest first, equals in their order.
    assert chosen.numpy().tolist() == [1, 4, 5, 0, 2, 3]
    assert places_in_chunks(lengths).numpy().tolist() == [3, 0, 4, 5, 1, 2]
    assert tf.gather(chosen, places_in_chunks(lengths)).numpy().tolist() == [0, 1, 2, 3, 4, 5]
