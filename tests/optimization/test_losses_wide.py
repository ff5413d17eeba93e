"""Types of logits and losses."""

import numpy as np
import pytest
from keras import ops

from kbert.optimization.losses import wide_dtype, widened


@pytest.mark.parametrize(
    "given, wide",
    [("bfloat16", "float32"), ("float16", "float32"), ("float32", "float32"), ("float64",) * 2],
)
def test_logits_are_float32_at_least(given, wide):
    assert wide_dtype(given) == wide
    found = widened(ops.cast([1.0, -2.0], given))
    assert ops.dtype(found) == wide
    np.testing.assert_array_equal(np.asarray(found), [1.0, -2.0])
