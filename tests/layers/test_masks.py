"""Masks, by hand and against the NumPy reference."""

import keras
import numpy as np
import pytest

from kbert.layers.masks import (
    additive_mask,
    any_visible,
    causal_attention_mask,
    padding_attention_mask,
)
from tests import numpy_reference as reference


def test_padding_mask_stands_before_heads_and_queries():
    mask = keras.ops.convert_to_numpy(padding_attention_mask(np.array([[True, False]])))
    assert mask.dtype == bool
    assert mask.tolist() == [[[[True, False]]]]


def test_padding_mask_takes_integers_as_bool():
    mask = padding_attention_mask(np.array([[1, 1, 0]]))
    assert keras.ops.convert_to_numpy(mask).tolist() == [[[[True, True, False]]]]


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
