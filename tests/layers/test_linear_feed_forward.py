"""The feed-forward network against the NumPy reference."""

import numpy as np
import pytest

from kbert.layers.linear import FeedForward
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

SHAPES = {
    "intermediate/kernel": (4, 7),
    "intermediate/bias": (7,),
    "output/kernel": (7, 4),
    "output/bias": (4,),
}
X = np.random.default_rng(6).normal(size=(2, 3, 4)).astype("float32")


@pytest.mark.parametrize("activation", ["gelu", "gelu_approximate", "relu"])
def test_ritual_and_numbers(activation):
    init = {"intermediate_dim": 7, "activation": activation}
    layer = check_layer(FeedForward, init, X, (2, 3, 4), SHAPES)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    expected = reference.feed_forward(X, *arrays.values(), activation)
    for training in (False, True):
        np.testing.assert_allclose(layer(X, training=training), expected, atol=1e-5)


def test_unknown_activation():
    with pytest.raises(ValueError, match="`activation` must be one of"):
        FeedForward(7, "sine")
