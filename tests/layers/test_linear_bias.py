import numpy as np

from kbert.layers.linear import Bias
from tests.check_layer import check_layer

X = np.array([[[1.0, 2.0], [3.0, 4.0]]], "float32")


def test_ritual_and_numbers():
    layer = check_layer(Bias, {"units": 2}, X, (1, 2, 2), {"bias": (2,)})
    layer.bias.assign([0.5, -1.0])
    np.testing.assert_array_equal(layer(X), [[[1.5, 1.0], [3.5, 3.0]]])
