import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.fused_blocks import DropNet

X = np.zeros((2, 3), "float32")


def drawn(rate, times=600):
    layer = DropNet(rate, seed=1)
    layer.build()
    call = tf.function(lambda: layer(X, training=True))
    return np.array([[float(w) for w in call()] for _ in range(times)])


@pytest.mark.parametrize("rate", [1.0, 0.4, 0.0])
def test_how_often_each_branch_is_alone(rate):
    found = drawn(rate)
    assert np.all(found.sum(axis=1) == 1.0)
    shares = [(found[:, 0] == first).mean() for first in (1.0, 0.0, 0.5)]
    # Zhu et al. 2020: p / 2, p / 2 and 1 - p; four standard errors of 600 draws are 0.08.
    np.testing.assert_allclose(shares, [rate / 2, rate / 2, 1 - rate], atol=0.085)


def test_both_count_alike_when_it_does_not_train():
    layer = DropNet()
    layer.build()
    assert [float(w) for w in layer(X)] == [0.5, 0.5]
    layer.forced = (1.0, 0.0)
    assert [float(w) for w in layer(X, training=True)] == [1.0, 0.0]


def test_type_and_configuration():
    layer = DropNet(0.3, seed=2, dtype="bfloat16")
    layer.build()
    assert layer(tf.zeros((1, 1), "bfloat16"), training=True)[0].dtype == tf.bfloat16
    assert layer.get_config()["rate"] == 0.3 and layer.get_config()["seed"] == 2


@pytest.mark.parametrize("rate", [-0.1, 1.1])
def test_errors(rate):
    with pytest.raises(ValueError, match=rf"`rate` must be in \[0, 1\]. Received: rate={rate}"):
        DropNet(rate)
