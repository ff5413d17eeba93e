"""Matrix products and the shortest time of a step, by hand."""

import pytest
import tensorflow as tf

from kbert.tpu_check.check import traced_step
from kbert.tpu_check.costs import product_flops, step_time
from kbert.tpu_check.tpu_chips import tpu_chip
from tests.training.small_steps import LENGTH, ROWS, compiled


def flops_of(function, *shapes):
    specs = [tf.TensorSpec(shape, tf.float32) for shape in shapes]
    return product_flops(tf.function(function).get_concrete_function(*specs).graph)


@pytest.mark.parametrize(
    "function, shapes, expected",
    [
        (tf.matmul, [(3, 4), (4, 5)], 2 * 3 * 4 * 5),
        (lambda a, b: tf.matmul(a, b, transpose_a=True), [(4, 3), (4, 5)], 2 * 3 * 4 * 5),
        (lambda a, b: tf.matmul(a, b, transpose_b=True), [(7, 3, 4), (7, 5, 4)], 7 * 2 * 3 * 4 * 5),
        (lambda a, b: tf.einsum("btd,dh->bth", a, b), [(2, 3, 4), (4, 5)], 2 * 2 * 3 * 4 * 5),
        (lambda a, b: a + b, [(3, 4), (3, 4)], 0),
    ],
)
def test_products(function, shapes, expected):
    assert flops_of(function, *shapes) == expected


def test_a_step_costs_three_times_its_forward_pass():
    checked = compiled()
    cells, width, wide, heads = ROWS * LENGTH, 16, 32, 2
    blocks = 2 * cells * (4 * width * width + 2 * width * wide)
    attention = 2 * 2 * ROWS * heads * LENGTH * LENGTH * (width // heads)
    pooled = 2 * ROWS * (width * width + width * 2)  # pooler and classifier
    # Of one-hot segments and their table: forward, and the table's gradient alone.
    segments = 2 * 2 * cells * 2 * width
    found = product_flops(traced_step(checked.model, checked.batch).graph)
    assert found == 3 * (blocks + attention + pooled) + segments


def test_the_time_is_that_of_the_slowest_part():
    # v5e: 197e12 FLOP, 819e9 bytes and 200e9 bytes over the links a second.
    found = step_time(tpu_chip("v5e"), 197e11, 819e8, 100e9, cores=4)
    assert found.compute == pytest.approx(0.1)
    assert found.memory == pytest.approx(0.1)
    assert found.links == pytest.approx(100e9 * 2 * 3 / 4 / 200e9)
    assert found.ideal == found.links
    assert step_time(tpu_chip("v5e"), 1.0, 1.0, 1e9, cores=1).links == 0
