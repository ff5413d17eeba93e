"""Means over an epoch, by hand and in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import tensorflow as tf

from kbert.optimization.sequence_losses import StreamingMean


def test_by_hand():
    metric = StreamingMean()
    assert float(metric.result()) == 0.0
    metric.add(np.array([[2.0, 3.0, 50.0]]), np.array([[1.0, 1.0, 0.0]]))
    assert float(metric.result()) == pytest.approx(5 / 2)
    metric.add(np.array([[1.0], [4.0]]), np.ones((2, 1)))
    assert float(metric.result()) == pytest.approx(10 / 4)  # not the mean of 5/2 and 5/2
    metric.add(np.array([[10.0], [20.0]]), np.ones((2, 1)), sample_weight=[0.0, 2.0])
    assert float(metric.result()) == pytest.approx(50 / 6)
    metric.reset_state()
    assert float(metric.result()) == 0.0


@pytest.mark.parametrize("way", ["eager", "graph", "xla"])
def test_a_long_epoch_is_added_up_exactly(way):
    # 2^24 tokens are there already: one more by one more, float32 alone would stay where it is.
    metric = StreamingMean()
    metric.add(np.full((1, 1), 2.0**24, "float32"), np.ones((1, 1)))
    metric._sums[2].assign(2.0**24)

    def add(value):
        metric.add(value, tf.ones((1, 1)))

    if way != "eager":
        add = tf.function(add, jit_compile=way == "xla")
    total, counted = Fraction(2**24), 2**24
    for step in range(301):
        value = np.float32(0.1 + 0.01 * (step % 7))
        total, counted = total + Fraction(float(value)), counted + 1
        add(tf.fill((1, 1), value))
    sums = [float(v) for v in metric.variables]
    assert sums[2] + sums[3] == counted
    # Compensated, the error is one of the last addition, not one of each.
    assert sums[0] + sums[1] == pytest.approx(float(total), abs=1e-4)
    assert float(metric.result()) == pytest.approx(float(total / counted), rel=2e-7)


def test_names_of_the_sums():
    names = [v.name for v in StreamingMean(name="mine").variables]
    assert names == ["total", "total_rest", "counted", "counted_rest"]
