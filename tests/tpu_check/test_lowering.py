"""A step as XLA's program, and what its text tells."""

import tensorflow as tf

from kbert.tpu_check.check import step_variables, traced_step
from kbert.tpu_check.graph import DYNAMIC
from kbert.tpu_check.lowering import (
    CUSTOM_CALL,
    FLOAT64,
    LOWERING,
    StepValues,
    has_tpu_kernels,
    hlo_problems,
    lowered,
)
from tests.training.small_steps import WithStrings, compiled

# Lines as XLA writes them.
_BOUNDED = '  %s = s32[<=2]{0} set-dimension-size(s32[2]{0} %t), metadata={op_name="a/Unique"}'
_DOUBLE = '  %a = f64[3]{0} add(f64[3]{0} %b, f64[3]{0} %c), metadata={op_name="m/add"}'
_CALL = '  %c = f32[3]{0} custom-call(f32[3]{0} %b), custom_call_target="EagerPyFunc"'
_HINT = '  %c = f32[3]{0} custom-call(f32[3]{0} %b), custom_call_target="Sharding"'
_COMPARED = "  %l = pred[] compare(s32[] %i, s32[] %n), direction=LE"


def test_the_text_is_searched():
    assert hlo_problems(f"{_HINT}\n{_COMPARED}") == []
    dynamic, double, call = hlo_problems(f"{_BOUNDED}\n{_DOUBLE}\n{_CALL}")
    assert dynamic.kind == DYNAMIC and "a/Unique" in dynamic.message and dynamic.is_fatal
    assert double.kind == FLOAT64 and "m/add" in double.message and not double.is_fatal
    assert call.kind == CUSTOM_CALL and "EagerPyFunc" in call.message and call.is_fatal


def test_a_step_is_lowered_with_what_is_installed():
    checked = compiled()
    step = StepValues(traced_step(checked.model, checked.batch), step_variables(checked.model))
    found = lowered(step, tf.nest.flatten(checked.batch))
    assert found.problems == []
    assert found.platform == ("TPU" if has_tpu_kernels() else "CPU")
    assert (found.program is None) != has_tpu_kernels()
    # Each variable is written in its own place.
    assert found.aliases == dict(enumerate(step.written))


def test_what_xla_refuses_is_told_in_its_words():
    checked = compiled(WithStrings)
    step = StepValues(traced_step(checked.model, checked.batch), step_variables(checked.model))
    (found,) = lowered(step, tf.nest.flatten(checked.batch)).problems
    assert found.kind == LOWERING and "AsString" in found.message
