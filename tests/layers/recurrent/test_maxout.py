"""The larger of each two neighbours."""

import numpy as np

from kbert.layers.recurrent.maxout import Maxout
from tests.check_layer import check_layer


def test_by_hand():
    layer = Maxout(2)
    layer.build((None, 2))
    layer.linear.kernel.assign([[1.0, -1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    layer.linear.bias.assign([0.0, 0.0, 0.0, 0.5])
    found = layer(np.array([[3.0, 4.0], [-1.0, -4.0]], "float32"))
    np.testing.assert_array_equal(found, [[3.0, 6.0], [1.0, -2.0]])


def test_the_ritual():
    inputs = np.random.default_rng(1).normal(size=(2, 3, 4)).astype("float32")
    variables = {"linear/kernel": (4, 10), "linear/bias": (10,)}
    check_layer(Maxout, {"units": 5}, inputs, (2, 3, 5), variables)
