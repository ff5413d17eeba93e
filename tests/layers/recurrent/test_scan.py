"""A loop over time that keeps what its steps return."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.recurrent.scan import scan

INPUTS = np.arange(12, dtype="float32").reshape(3, 2, 2)  # (T, B, W)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("in_graph", [False, True])
def test_sums(reverse: bool, in_graph: bool):
    def run(inputs: tf.Tensor) -> tuple:
        def step(carry: tuple, now: tuple) -> tuple:
            total = carry[0] + now[0]
            return (total,), (total, now[0][:, :1])

        return scan(step, (tf.zeros_like(inputs[0]),), (inputs,), (2, 1), reverse)

    if in_graph:
        run = tf.function(run, input_signature=[tf.TensorSpec((None, None, 2))])
    (total,), (sums, firsts) = run(tf.constant(INPUTS))
    way = slice(None, None, -1) if reverse else slice(None)
    np.testing.assert_array_equal(total, INPUTS.sum(axis=0))
    np.testing.assert_array_equal(sums[way], np.cumsum(INPUTS[way], axis=0))
    np.testing.assert_array_equal(firsts, INPUTS[:, :, :1])


def test_no_time_at_all():
    empty = tf.zeros((0, 2, 3))
    (last,), (kept,) = scan(lambda c, x: (c, c), (tf.ones((2, 3)),), (empty,), (3,))
    np.testing.assert_array_equal(last, np.ones((2, 3)))
    assert kept.shape == (0, 2, 3)
