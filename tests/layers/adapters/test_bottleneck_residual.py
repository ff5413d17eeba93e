"""The residual connection with an adapter, written out in NumPy."""

import numpy as np

from kbert.layers.adapters.bottleneck import AdapterResidual
from tests import numpy_reference as reference
from tests.check_layer import assign_weights, check_layer

X = np.random.default_rng(8).normal(size=(2, 3, 4)).astype("float32")
SHAPES = {
    "adapter/down/kernel": (4, 2),
    "adapter/down/bias": (2,),
    "adapter/up/kernel": (2, 4),
    "adapter/up/bias": (4,),
    "layer_norm/gamma": (4,),
    "layer_norm/beta": (4,),
}


def sublayer(x):
    return x * x + 1.0


def test_ritual_and_numbers():
    init = {"adapter_dim": 2, "dropout": 0.1, "epsilon": 1e-3}
    call = {"sublayer": sublayer}
    layer = check_layer(AdapterResidual, init, X, (2, 3, 4), SHAPES, call_kwargs=call)
    arrays = reference.random_arrays(SHAPES)
    assign_weights(layer, arrays)
    # The adapter stands on the sublayer's output alone.
    output = reference.bottleneck_adapter(sublayer(X), arrays, "adapter/")
    norm = (arrays["layer_norm/gamma"], arrays["layer_norm/beta"], 1e-3)
    expected = reference.post_norm_residual(X, output, *norm)
    np.testing.assert_allclose(layer(X, sublayer=sublayer), expected, atol=1e-5)


def test_with_a_new_adapter_it_is_the_plain_residual():
    layer = AdapterResidual(2)
    layer.build(X.shape)
    expected = reference.post_norm_residual(X, sublayer(X), np.ones(4), np.zeros(4))
    np.testing.assert_allclose(layer(X, sublayer=sublayer), expected, atol=1e-3)


def test_dropout_falls_on_the_sublayer_before_the_adapter():
    layer = AdapterResidual(2, 0.5)
    layer.build(X.shape)
    seen = []
    adapter = layer.adapter.call
    layer.adapter.call = lambda x, training=None: seen.append(np.asarray(x)) or adapter(x)
    layer(X, sublayer=lambda x: x * 0.0 + 1.0, training=True)
    # By hand: kept ones become 1 / (1 - 0.5).
    assert set(np.unique(np.round(seen[0], 5))) == {0.0, 2.0}
