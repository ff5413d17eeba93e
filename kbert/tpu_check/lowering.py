"""Lowering of a training step to XLA: for a TPU, or for the CPU if there are no TPU kernels."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import compiler_ir  # has no public name

from kbert.tpu_check.graph import DYNAMIC, TpuProblem
from kbert.tpu_check.pure_step import StepValues

FLOAT64, CUSTOM_CALL, LOWERING = "float64", "custom call", "lowering"
_CUSTOM = re.compile(r'custom_call_target="([^"]+)"')
# Hints to the compiler, which TPUs support.
_KNOWN_CALLS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape")
_SOURCE = re.compile(r'op_name="([^"]*)"')


@dataclass(frozen=True)
class Lowered:
    """A step lowered to XLA.

    Attributes:
        platform: "TPU" or "CPU", whose kernels were used.
        problems: The problems found.
        program: StableHLO, for the compiler of TPUs; None if lowering failed or was for the CPU.
        aliases: Index of each result that is written in place -> index of its argument.
    """

    platform: str
    problems: list[TpuProblem]
    program: bytes | None
    aliases: dict[int, int]


def has_tpu_kernels() -> bool:
    """Returns whether this TensorFlow is tensorflow-tpu, which alone has TPU kernels."""
    try:
        metadata.version("tensorflow-tpu")
        metadata.version("libtpu")
    except metadata.PackageNotFoundError:
        return False
    return True


def load_tpu_kernels() -> None:
    """Lowers something small: until then TensorFlow does not list its TPU kernels."""
    tiny = tf.function(lambda x: x + 1.0, jit_compile=True, autograph=False)
    tiny.experimental_get_compiler_ir(tf.zeros([1]))(stage="hlo", platform_name="TPU")


def lowered(step: StepValues, data: Sequence[tf.TensorSpec]) -> Lowered:
    """Lowers a step, for a TPU if this TensorFlow can, otherwise for the CPU.

    Args:
        step: The step.
        data: Specifications of its batch, flattened.
    """
    platform = "TPU" if has_tpu_kernels() else "CPU"
    specs = [*step.specs(), *data]
    count = len(step.variables)
    whole = tf.function(
        lambda *given: step(list(given[:count]), *given[count:]), jit_compile=True, autograph=False
    ).get_concrete_function(*specs)
    generate = compiler_ir.from_concrete_function(whole, specs)
    aliases = dict(enumerate(step.written))
    try:
        text = generate(stage="hlo", platform_name=platform)
        program = None
        if platform == "TPU":
            program = generate(stage="stablehlo_serialized", platform_name=platform)
    except (ValueError, tf.errors.OpError) as error:
        return Lowered(platform, [_refused(platform, error)], None, aliases)
    return Lowered(platform, hlo_problems(text), program, aliases)


def hlo_problems(text: str) -> list[TpuProblem]:
    """Finds parts of XLA's program that a TPU would refuse, or be slow at.

    Args:
        text: The program as HLO.
    """
    problems = []
    lines = text.splitlines()
    dynamic = _names(line for line in lines if "<=" in line and "[<=" in line.replace(" ", ""))
    if dynamic:
        problems.append(
            TpuProblem(
                DYNAMIC,
                f"XLA bounds a shape that is known only when the step runs: {dynamic}",
                "give it a result of a fixed shape: pad, and mask what is too much",
            )
        )
    doubles = _names(line for line in lines if "f64[" in line)
    if doubles:
        problems.append(
            TpuProblem(
                FLOAT64,
                f"the step computes in float64, which a TPU emulates slowly: {doubles}",
                "use float32, or bfloat16 by precision: mixed_bfloat16",
                is_fatal=False,
            )
        )
    calls = sorted(set(_CUSTOM.findall(text)) - set(_KNOWN_CALLS))
    if calls:
        problems.append(
            TpuProblem(
                CUSTOM_CALL,
                f"the step calls code outside of XLA: {', '.join(calls)}",
                "compute it from TensorFlow's own operations",
            )
        )
    return problems


def _names(lines: Any) -> str:
    """Returns a few of the operations that lines of HLO come from."""
    found = {match[1] for line in lines if (match := _SOURCE.search(line))}
    return ", ".join(sorted(found)[:3]) + (", ..." if len(found) > 3 else "") if found else ""


def _refused(platform: str, error: Exception) -> TpuProblem:
    reason = str(error).strip().splitlines()[0]
    return TpuProblem(
        LOWERING,
        f"XLA does not take the step for a {platform}: {reason}",
        "change the operation that it names",
    )
