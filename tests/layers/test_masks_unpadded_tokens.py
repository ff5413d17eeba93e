"""Tests of the real tokens of a padded batch."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.layers.masks import unpadded_tokens

# Row 0 has three tokens, row 1 one, row 2 none, row 3 two with a hole between them.
MASK = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]], "bool")


def masks():
    """Padding masks in any pattern."""
    return st.tuples(st.integers(0, 6), st.integers(1, 7)).flatmap(
        lambda shape: st.lists(
            st.lists(st.booleans(), min_size=shape[1], max_size=shape[1]),
            min_size=shape[0],
            max_size=shape[0],
        ).map(lambda rows: np.array(rows, "bool").reshape(shape))
    )


def test_by_hand():
    tokens = unpadded_tokens(MASK)
    # The row without a token keeps its first cell, 8.
    assert np.array(tokens.places).tolist() == [0, 1, 2, 4, 8, 12, 14]
    assert np.array(tokens.first).tolist() == [0, 3, 4, 5]
    assert np.array(tokens.last).tolist() == [2, 3, 4, 6]
    assert np.array(tokens.positions()).tolist() == [0, 1, 2, 0, 0, 0, 2]
    (group,) = tokens.groups
    assert np.array(group.slots).tolist() == [[0, 1, 2], [3, 0, 0], [4, 0, 0], [5, 6, 0]]
    assert np.array(group.cells).tolist() == [0, 1, 2, 3, 6, 9, 10]
    seen = np.array(group.mask)[:, 0, 0].astype(int).tolist()
    assert seen == [[1, 1, 1], [1, 0, 0], [0, 0, 0], [1, 1, 0]]


def test_groups_by_hand():
    tokens = unpadded_tokens(MASK, groups=2)
    long, short = tokens.groups
    # The longest rows first: 0 and 3 (three and two tokens), then 1 and 2 (one each).
    assert np.array(tokens.places).tolist() == [0, 1, 2, 12, 14, 4, 8]
    assert np.array(tokens.first).tolist() == [0, 5, 6, 3]
    assert np.array(tokens.last).tolist() == [2, 5, 6, 4]
    assert np.array(long.slots).tolist() == [[0, 1, 2], [3, 4, 0]]
    assert np.array(short.slots).tolist() == [[0], [1]]
    assert np.array(short.mask)[:, 0, 0].tolist() == [[True], [False]]


def test_causal_mask_by_hand():
    (group,) = unpadded_tokens(np.array([[True, False, True]]), causal=True).groups
    assert np.array(group.mask)[0, 0].tolist() == [[True, False], [True, True]]


@given(masks(), st.integers(1, 4))
def test_tokens_go_to_their_rows_and_back(mask, groups):
    tokens = unpadded_tokens(mask, groups=groups)
    kept = mask.copy()
    kept[:, 0] = True
    assert sorted(np.array(tokens.places)) == np.flatnonzero(kept).tolist()
    batch = np.arange(mask.size).reshape(mask.shape)
    states = np.array(tokens.of(batch), "float32")[:, None]
    assert np.array_equal(np.array(tokens.in_rows(states))[..., 0], batch * kept)
    grids = tokens.in_groups(states)
    assert np.array_equal(np.array(tokens.from_groups(grids)), states)
    assert sum(grid.shape[0] for grid in grids) == len(mask)
    if len(mask):
        assert np.array_equal(states[np.array(tokens.first), 0], batch[:, 0])
        last = [np.flatnonzero(row)[-1] for row in kept]
        assert states[np.array(tokens.last), 0].tolist() == batch[range(len(mask)), last].tolist()


@given(masks(), st.integers(1, 3))
def test_each_group_holds_whole_rows_the_longest_first(mask, groups):
    tokens = unpadded_tokens(mask, groups=groups)
    longest = [int(group.slots.shape[1]) for group in tokens.groups if len(group.slots)]
    assert longest == sorted(longest, reverse=groups > 1) or groups == 1
    visible = sum(int(np.sum(np.array(group.mask))) for group in tokens.groups)
    assert visible == mask.sum()


@pytest.mark.parametrize("groups", [1, 3])
def test_gradients_are_those_of_plain_look_ups(groups):
    """Of what is computed between `in_groups` and `from_groups`, by the chain rule."""
    tokens = unpadded_tokens(MASK, groups=groups)
    count = len(np.array(tokens.places))
    states = tf.constant(np.random.default_rng(1).normal(size=(count, 3)))
    factors = tf.constant(np.random.default_rng(2).normal(size=(count, 3)))
    with tf.GradientTape() as tape:
        tape.watch(states)
        back = tokens.from_groups(tuple(tf.sin(grid) for grid in tokens.in_groups(states)))
        total = tf.reduce_sum(back * factors)
    assert np.allclose(tape.gradient(total, states), np.cos(states) * factors, atol=1e-12)


def test_gradient_of_rows():
    tokens = unpadded_tokens(MASK, groups=2)
    states = tf.constant(np.random.default_rng(1).normal(size=(7, 3)))
    factors = np.random.default_rng(2).normal(size=(4, 4, 3))
    with tf.GradientTape() as tape:
        tape.watch(states)
        total = tf.reduce_sum(tokens.in_rows(states) * factors)
    expected = factors.reshape(16, 3)[np.array(tokens.places)]
    assert np.array_equal(tape.gradient(total, states), expected)
