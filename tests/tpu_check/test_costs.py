"""The memory of a step: the lower bound by hand, and the compiler's words."""

import tensorflow as tf

from kbert.tpu_check.costs import (
    MEMORY,
    StepMemory,
    least_memory,
    memory_problems,
    refused,
)
from kbert.tpu_check.tpu_chips import GIB, tpu_chip

# libtpu 0.0.19.1 wrote this for 16,384 rows of 512 tokens.
_ONE_RESULT = (
    "RESOURCE_EXHAUSTED: Allocation (size=34359738368) would exceed memory (size=17179869184) :: "
    "#allocation440 [shape = 'u32[16384,2,512,512]{3,2,1,0:T(8,128)}', space=hbm]"
)
# The form of its refusal where all results together are too much.
_REFUSAL = (
    "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. "
    "Used 24.50G of 15.75G hbm. Exceeded hbm capacity by 8.75G.\n\nTotal hbm usage >= 24.75G:"
)


def test_at_least_state_gradients_and_batch():
    weight = tf.Variable(tf.zeros((3, 4)))
    moments = [tf.Variable(tf.zeros((3, 4))) for _ in range(2)]
    count = tf.Variable(0, dtype=tf.int64)
    batch = [tf.TensorSpec((5, 6), tf.int32), tf.TensorSpec((5, 6), tf.bool)]
    found = least_memory([weight, *moments, count], [weight], batch)
    assert found.state == 3 * 48 + 8
    assert found.total == found.state + 48 + 5 * 6 * 4 + 5 * 6
    assert found.source == "lower bound"


def test_what_fits_is_no_problem_and_what_does_not_is_one():
    chip = tpu_chip("v5e")
    assert memory_problems(StepMemory(16 * GIB, 0, "TPU compiler"), chip) == []
    (found,) = memory_problems(StepMemory(20 * GIB, 0, "lower bound"), chip)
    assert found.kind == MEMORY and found.is_fatal
    assert "needs at least 20.00 GiB a core, and a v5e has 16" in found.message
    assert "batch_size" in found.advice and "gradient_checkpointing" in found.advice


def test_the_compilers_refusal_is_read():
    found = refused(_REFUSAL, tpu_chip("v5e"))
    assert found.kind == MEMORY
    assert "needs 24.50 GiB a core, and a v5e has 15.75 for programs" in found.message
    one = refused(_ONE_RESULT, tpu_chip("v5e"))
    assert one.kind == MEMORY
    assert "a result of 32.00 GiB, and a v5e has 16.00" in one.message
    other = refused("INTERNAL: something else\nmore", tpu_chip("v5e"))
    assert other.kind == "compiler" and "INTERNAL: something else" in other.message
