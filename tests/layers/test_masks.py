"""Masks, by hand and against the NumPy reference."""

import keras
import numpy as np
import pytest

from kbert.layers.masks import (
    additive_mask,
    any_visible,
    causal_attention_mask,
    last_real_state,
    padding_attention_mask,
    sequence_attention_mask,
    with_padding,
)
from tests import numpy_reference as reference


def test_padding_mask_stands_before_heads_and_queries():
    mask = keras.ops.convert_to_numpy(padding_attention_mask(np.array([[True, False]])))
    assert mask.dtype == bool
    assert mask.tolist() == [[[[True, False]]]]


def test_padding_mask_takes_integers_as_bool():
    mask = padding_attention_mask(np.array([[1, 1, 0]]))
    assert keras.ops.convert_to_numpy(mask).tolist() == [[[[True, True, False]]]]


def test_padding_beside_an_attention_mask():
    real = np.array([[True, True, False]])
    assert with_padding(None) is None and with_padding(None, None) is None
    assert with_padding("kept", None) == "kept"
    alone = keras.ops.convert_to_numpy(with_padding(None, real, None))
    assert alone.tolist() == [[[[True, True, False]]]]
    both = keras.ops.convert_to_numpy(with_padding(causal_attention_mask(3), real))
    assert both[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]


def test_causal_mask_is_the_reference():
    mask = keras.ops.convert_to_numpy(causal_attention_mask(4))
    assert mask.shape == (1, 1, 4, 4)
    assert mask[0, 0].tolist() == reference.causal_mask(4).tolist()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_additive_mask_is_zero_or_far_below_and_finite(dtype):
    added = additive_mask(np.array([True, False]), dtype)
    assert keras.backend.standardize_dtype(added.dtype) == dtype
    seen, unseen = keras.ops.convert_to_numpy(keras.ops.cast(added, "float32"))
    assert seen == 0.0
    # e^-1000 is 0 in every type, and the largest float16 is 65504.
    assert np.isfinite(unseen) and unseen < -1000.0


def test_any_visible_by_hand():
    mask = np.array([[[True, False], [False, False]]])
    visible = keras.ops.convert_to_numpy(any_visible(mask, "float32"))
    assert visible.tolist() == [[[1.0], [0.0]]]


def test_what_a_sequence_may_see_of_itself():
    ids, real = np.zeros((2, 3), "int32"), np.array([[1, 1, 0], [1, 1, 1]], bool)
    assert sequence_attention_mask(ids, None, causal=False) is None
    both = sequence_attention_mask(ids, real, causal=False)
    assert keras.ops.convert_to_numpy(both).tolist() == [[[[True, True, False]]], [[[True] * 3]]]
    left = sequence_attention_mask(ids, None, causal=True)
    triangle = [[True, False, False], [True, True, False], [True, True, True]]
    assert keras.ops.convert_to_numpy(left).tolist() == [[triangle]]
    left = keras.ops.convert_to_numpy(sequence_attention_mask(ids, real, causal=True))
    assert left[:, 0].tolist() == [[*triangle[:2], [True, True, False]], triangle]


def test_the_last_real_state():
    states = np.arange(12, dtype="float32").reshape(4, 3, 1)
    real = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0], [0, 0, 0]], bool)
    found = keras.ops.convert_to_numpy(last_real_state(states, real))
    assert found.tolist() == [[1.0], [5.0], [6.0], [9.0]]
    found = keras.ops.convert_to_numpy(last_real_state(states, None))
    assert found.tolist() == [[2.0], [5.0], [8.0], [11.0]]
