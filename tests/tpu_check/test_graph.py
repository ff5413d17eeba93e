"""Strings, dynamic shapes and missing kernels in the graph of a step."""

import pytest
import tensorflow as tf

from kbert.layers.recurrent.recurrent import Recurrent
from kbert.tpu_check.check import traced_step
from kbert.tpu_check.graph import (
    DYNAMIC,
    STRING,
    graph_problems,
    has_tpu_kernel,
    kernel_problems,
    line_of,
)
from tests.training.small_steps import WithDynamicShape, WithStrings, compiled


def problems_of(function, *specs):
    traced = tf.function(function, autograph=False).get_concrete_function(*specs)
    return graph_problems(traced.graph)


def test_a_step_of_fixed_shapes_has_none():
    checked = compiled()
    # The gradient of its embeddings is no list of the tokens that occur: see AdamW.
    assert graph_problems(traced_step(checked.model, checked.batch).graph) == []


@pytest.mark.parametrize(
    "kind, problem, operation, advice",
    [
        (WithStrings, STRING, "AsString", "do it in tf.data, on the host"),
        (WithDynamicShape, DYNAMIC, "Where", "a result of a fixed shape"),
    ],
)
def test_a_planted_fault_is_found_with_its_line(kind, problem, operation, advice):
    checked = compiled(kind)
    found = graph_problems(traced_step(checked.model, checked.batch).graph)
    assert {one.kind for one in found} == {problem}
    assert operation in found[0].message and "small_steps.py:" in found[0].message
    assert advice in found[0].advice and found[0].is_fatal


def test_only_the_first_of_a_chain_is_named():
    found = problems_of(lambda x: tf.unique(x)[0] + 1, tf.TensorSpec((4,), tf.int32))
    assert [one.message.split()[0] for one in found] == ["Unique"]


def test_strings_that_are_given_are_found():
    found = problems_of(lambda x: tf.strings.length(x), tf.TensorSpec((4,), tf.string))
    assert [one.kind for one in found] == [STRING]


def test_control_flow_is_looked_into():
    def step(x):
        return tf.cond(x[0] > 0, lambda: tf.size(tf.unique(x)[0]), lambda: 0)

    found = problems_of(step, tf.TensorSpec((4,), tf.int32))
    assert [one.message.split()[0] for one in found] == ["Unique"]


def test_a_loop_over_time_has_fixed_shapes():
    """Its gradient too: the condition of the loop has placeholders that nothing reads."""
    layer = Recurrent(3)
    layer.build((2, 4, 3))

    def step(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            total = tf.reduce_sum(layer(inputs))
        return tape.gradient(total, [inputs, layer.kernel.value])

    assert problems_of(step, tf.TensorSpec((2, 4, 3), tf.float32)) == []


def test_an_operation_without_a_kernel_is_named_with_its_types():
    @tf.function(autograph=False)
    def step(x):
        return tf.strings.as_string(x)

    graph = step.get_concrete_function(tf.TensorSpec((2,), tf.float32)).graph
    operation = next(one for one in graph.get_operations() if one.type == "AsString")
    assert not has_tpu_kernel(operation)  # in no TensorFlow has it one
    messages = [one.message for one in kernel_problems(graph)]
    assert any(m.startswith("AsString") and "no TPU kernel for float32" in m for m in messages)
    assert "test_graph.py:" in line_of(operation)
