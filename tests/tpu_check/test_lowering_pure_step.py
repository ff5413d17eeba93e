"""A training step from values to values, compared with the step that trains."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.tpu_check.check import step_variables, traced_step
from kbert.tpu_check.lowering import StepValues, adam_update
from tests.training.small_steps import LABELS, LENGTH, ROWS, compiled


@pytest.fixture(scope="module")
def checked():
    return compiled()


@pytest.fixture(scope="module")
def traced(checked):
    return traced_step(checked.model, checked.batch)


def batch():
    random = np.random.default_rng(0)
    mask = np.arange(LENGTH) < np.array([[8], [5], [3]])
    inputs = {
        "token_ids": tf.constant(random.integers(5, 30, (ROWS, LENGTH)), tf.int32),
        "segment_ids": tf.zeros((ROWS, LENGTH), tf.int32),
        "padding_mask": tf.constant(mask),
    }
    return inputs, tf.constant(random.integers(0, LABELS, ROWS), tf.int32)


def test_it_does_to_values_what_the_step_does_to_variables(checked, traced):
    step = StepValues(traced, step_variables(checked.model))
    before = [tf.identity(variable) for variable in step.variables]
    found = tf.function(step, autograph=False)(before, *tf.nest.flatten(batch()))
    logs = checked.model.train_step(batch())
    moved = 0
    for number, value in zip(step.written, found):
        after = step.variables[number].numpy()
        np.testing.assert_allclose(value.numpy(), after, rtol=1e-6, atol=1e-6)
        moved += not np.array_equal(before[number].numpy(), after)
    # Each weight, both of its moments, and the count of the steps at least; dropout's seeds too.
    assert moved > 3 * len(checked.model.trainable_variables)
    result = tf.nest.flatten(logs)[-1]
    results = found[len(step.written) :]
    assert any(np.allclose(value.numpy(), result, rtol=1e-6) for value in results)


def test_adam_is_that_of_the_paper():
    # Kingma and Ba 2015, algorithm 1 with the efficient form of section 2, third step, by NumPy.
    random = np.random.default_rng(1)
    weight, gradient, m = random.normal(size=(3, 4, 5))
    v = random.random((4, 5))
    rate, b1, b2, epsilon, step = 0.1, 0.9, 0.99, 1e-6, 3
    m_after, v_after = b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * gradient**2
    expected = weight - rate * np.sqrt(1 - b2**step) / (1 - b1**step) * m_after / (
        np.sqrt(v_after) + epsilon
    )
    numbers = (weight, m, v, b1**step, b2**step, rate, b1, b2, epsilon, gradient)
    found = adam_update(*(tf.constant(number, tf.float64) for number in numbers))
    for value, right in zip(found, (expected, m_after, v_after)):
        np.testing.assert_allclose(value, right, rtol=1e-12)


def test_a_variable_from_outside_is_an_error(traced):
    with pytest.raises(ValueError, match="no resource from outside but the variables"):
        StepValues(traced, [])


def test_other_ways_to_meet_a_variable_are_an_error():
    variable = tf.Variable(tf.zeros((4, 2)))
    add = tf.function(
        lambda rows: variable.scatter_add(tf.IndexedSlices(tf.ones((2, 2)), rows)), autograph=False
    )
    traced = add.get_concrete_function(tf.TensorSpec((2,), tf.int32))
    with pytest.raises(ValueError, match="Received: ResourceScatterAdd"):
        StepValues(traced, [variable])
