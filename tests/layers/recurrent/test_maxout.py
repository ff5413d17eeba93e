"""The larger of each two neighbours."""

import numpy as np
import pytest

from kbert.layers.recurrent.maxout import Maxout
from tests.check_layer import check_layer


def test_by_hand():
    layer = Maxout(2)
    layer.build((None, 2))
    layer.kernel.assign([[1.0, -1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    layer.bias.assign([0.0, 0.0, 0.0, 0.5])
    found = layer(np.array([[3.0, 4.0], [-1.0, -4.0]], "float32"))
    np.testing.assert_array_equal(found, [[3.0, 6.0], [1.0, -2.0]])


def test_the_ritual():
    inputs = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
    check_layer(Maxout, {"units": 5}, inputs, (2, 3, 5), {"kernel": (4, 10), "bias": (10,)})


def test_a_constant_is_behind_all_inputs():
    draw = np.random.default_rng(1)
    inputs, constant = draw.normal(size=(2, 3, 4)), draw.normal(size=(2, 6))
    layer = Maxout(5, dtype="float64")
    layer.build((None, None, 10))
    joined = np.concatenate([inputs, np.repeat(constant[:, None], 3, axis=1)], axis=-1)
    np.testing.assert_allclose(layer(inputs, constant), layer(joined), atol=1e-12)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="`units` must be at least 1. Received: units=0"):
        Maxout(0)
