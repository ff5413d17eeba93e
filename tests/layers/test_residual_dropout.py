"""Dropout: the share and the scale of what is kept, and seeds drawn beforehand."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.residual import DrawnSeed, Dropout
from tests.check_layer import check_layer

X = np.ones((200, 100), "float32")


def test_ritual():
    check_layer(Dropout, {"rate": 0.1, "seed": 7}, X, (200, 100), 0)


def test_inference_changes_nothing():
    layer = Dropout(0.5)
    np.testing.assert_array_equal(layer(X), X)
    np.testing.assert_array_equal(layer(X, training=False), X)


def test_rate_zero_changes_nothing_and_has_no_state():
    layer = Dropout(0.0)
    np.testing.assert_array_equal(layer(X, training=True), X)
    assert layer.variables == [] and layer.draw() is None


def test_share_and_scale():
    # 20,000 units at rate 0.25: the standard error of the share is 0.0031, five of them 0.0153.
    kept = np.asarray(Dropout(0.25, seed=1)(X, training=True))
    np.testing.assert_allclose(np.unique(kept), [0.0, 4 / 3], rtol=1e-6)
    assert abs((kept == 0).mean() - 0.25) < 0.0153


def test_each_call_draws_anew_in_eager_and_in_a_graph():
    layer = Dropout(0.5, seed=1)
    graph = tf.function(lambda x: layer(x, training=True))
    drawn = [np.asarray(f(X)) for f in (lambda x: layer(x, training=True), graph, graph)]
    assert not (drawn[0] == drawn[1]).all()
    assert not (drawn[1] == drawn[2]).all()


def test_same_seed_same_sequence():
    first, second = (Dropout(0.5, seed=3) for _ in range(2))
    for _ in range(2):
        np.testing.assert_array_equal(first(X, training=True), second(X, training=True))


def test_a_drawn_seed_drops_the_same_units_twice():
    layer = Dropout(0.5, seed=1)
    layer.build()
    seed = layer.draw()
    once, again = (np.asarray(layer(X, training=True, seed=seed)) for _ in range(2))
    np.testing.assert_array_equal(once, again)
    assert not (once == np.asarray(layer(X, training=True))).all()
    fixed = DrawnSeed(seed)
    assert fixed.next() is fixed.next()


@pytest.mark.parametrize("rate", [-0.1, 1.0, "0.1", None])
def test_rate_out_of_range(rate):
    message = rf"`rate`, the `dropout` .* in \[0, 1\). Received: {rate!r}"
    with pytest.raises(ValueError, match=message):
        Dropout(rate)
