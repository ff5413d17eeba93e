"""Backward steps of cells beside automatic differentiation, and numbers by hand."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.recurrent.cells import CELLS, cell_of, product, product_over_rows

ROWS, UNITS = 3, 4


@pytest.mark.parametrize("name", CELLS)
def test_gradients(name: str):
    cell, draw = cell_of(name, UNITS), np.random.default_rng(1)
    width = cell.gates * UNITS
    inputs = tf.constant(draw.normal(size=(ROWS, width)))
    state = tf.constant(draw.normal(size=(ROWS, cell.width)))
    weights = [tf.constant(draw.normal(size=(UNITS, width)))]
    if cell.has_recurrent_bias:
        weights.append(tf.constant(draw.normal(size=UNITS)))
    upstream = tf.constant(draw.normal(size=(ROWS, cell.width)))
    with tf.GradientTape() as tape:
        tape.watch([inputs, state, *weights])
        new, saved = cell.forward(inputs, state, cell.prepared(tuple(weights)))
        total = tf.reduce_sum(new * upstream)
    wanted = tape.gradient(total, [inputs, state, *weights])
    kernels = cell.prepared(tuple(weights))
    of_inputs, of_state = cell.backward(upstream, state, saved, kernels)
    steps = [array[None] for array in (of_inputs, state, *saved)]
    of_weights = cell.weight_gradients(steps[0], steps[1], tuple(steps[2:]), "float64")
    for found, known in zip((of_inputs, of_state, *of_weights), wanted, strict=True):
        np.testing.assert_allclose(found, known, atol=1e-12)
    assert [array.shape[-1] for array in saved] == list(cell.saved_widths)


def test_a_closed_gate_keeps_the_state():
    """z = 1: h' = h. z = 0 and r = 0: h' = tanh(x)."""
    cell = cell_of("gru", 1)
    kernels = cell.prepared((tf.constant([[0.0, 0.0, 5.0]]),))
    state = tf.constant([[0.5]])
    kept, _ = cell.forward(tf.constant([[99.0, 0.0, 3.0]]), state, kernels)
    np.testing.assert_allclose(kept, [[0.5]])
    new, _ = cell.forward(tf.constant([[-99.0, -99.0, 0.25]]), state, kernels)
    np.testing.assert_allclose(new, np.tanh([[0.25]]), atol=1e-7)


def test_products_are_computed_in_the_dtype_of_the_kernel():
    rows = tf.constant([[1.0, 2.0**-9]])
    found = product(rows, tf.constant([[1.0], [1.0]], tf.bfloat16))
    assert found.dtype == tf.float32
    assert float(found[0, 0]) == 1.0  # 1 + 2^-9 has more bits
    left, right = np.ones((2, 3, 4), "float32"), np.ones((2, 3, 5), "float32")
    found = product_over_rows(tf.constant(left), tf.constant(right), "float32")
    np.testing.assert_array_equal(found, np.full((4, 5), 6.0))


def test_unknown():
    with pytest.raises(ValueError, match="`cell` must be one of .* Received: cell='rnn'"):
        cell_of("rnn", 3)
