"""Check that a configuration would train on a TPU, without a TPU.

The checked step is `train_step` of the model that the run of the configuration trains, with its
loss, metrics, optimizer and dropout: what each core runs on its rows of a batch. It is traced with
the shapes of these batches, inspected, lowered with TensorFlow's own TPU kernels and compiled by
the TPU's own compiler. If their packages are not installed, it is lowered for the CPU, and the
report lists what was not checked.
"""

import time
from dataclasses import asdict, dataclass
from typing import Any

import tensorflow as tf

from kbert.tpu_check.costs import (
    StepMemory,
    StepTime,
    compiled_memory,
    least_memory,
    memory_problems,
    product_flops,
    step_time,
)
from kbert.tpu_check.graph import TpuProblem, graph_problems, kernel_problems
from kbert.tpu_check.lowering import StepValues, has_tpu_kernels, load_tpu_kernels, lowered
from kbert.tpu_check.models import CheckedModel, checked_model
from kbert.tpu_check.tpu_chips import GIB, TpuChip, tpu_chip
from kbert.training.config.any_config import StoredConfig

_NEVER = ("how fast a TPU runs it", "the sums over the cores", "the input from the host")
_WITHOUT_KERNELS = (
    "which operations have a TPU kernel",
    "the memory that the step's own results need",
)


@dataclass(frozen=True)
class TpuReport:
    """Report of a check.

    Attributes:
        about: The checked batch of a core, in words.
        chip: The chip's name.
        cores: Number of cores that share a batch.
        parameters: Number of the model's trainable parameters.
        problems: The problems found; the step is accepted if none is fatal.
        memory: Memory that a core needs, or None if unknown.
        flops: FLOPs of the matrix products of a core's step.
        time: The shortest time of a step, or None if its FLOPs are unknown.
        platform: "TPU" or "CPU", for which the step was lowered; None if it was not.
        unchecked: What was not checked.
        seconds: Duration of the check.
    """

    about: str
    chip: str
    cores: int
    parameters: int
    problems: list[TpuProblem]
    memory: StepMemory | None
    flops: int
    time: StepTime | None
    platform: str | None
    unchecked: tuple[str, ...]
    seconds: float

    @property
    def is_accepted(self) -> bool:
        """Returns whether the step would train."""
        return not any(problem.is_fatal for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Returns the report in JSON types."""
        found = {"is_accepted": self.is_accepted, **asdict(self)}
        if self.time is not None:
            found["time"]["ideal"] = self.time.ideal
        return found


def check_config(config: StoredConfig, chip: str = "v5e", cores: int = 4) -> TpuReport:
    """Checks the training of a configuration.

    Args:
        config: The configuration.
        chip: The generation of TPUs.
        cores: Number of cores that share a batch.

    Raises:
        ValueError: The configuration has no fixed shapes, the chip is not known, or there are no
            cores.
    """
    tpu_chip(chip)
    if cores < 1:
        raise ValueError(f"`cores` must be at least 1. Received: cores={cores}")
    return check_step(checked_model(config, cores), chip, cores)


def check_step(checked: CheckedModel, chip: str = "v5e", cores: int = 4) -> TpuReport:
    """Checks the training step of a model, with the batch of a core.

    Raises:
        ValueError: The chip is not known.
    """
    begin, kind, model = time.perf_counter(), tpu_chip(chip), checked.model
    traced = traced_step(model, checked.batch)
    problems = graph_problems(traced.graph)
    if has_tpu_kernels():
        load_tpu_kernels()
        problems += kernel_problems(traced.graph)
    memory = least_memory(
        step_variables(model), model.trainable_variables, tf.nest.flatten(checked.batch)
    )
    unchecked = _NEVER if has_tpu_kernels() else (*_NEVER, *_WITHOUT_KERNELS)
    flops, platform = 0, None
    if not problems:  # a later stage would only report the same in other words
        flops = product_flops(traced.graph)
        step = StepValues(traced, step_variables(model))
        program = lowered(step, tf.nest.flatten(checked.batch))
        platform, problems = program.platform, list(program.problems)
        if program.program is None:
            problems += memory_problems(memory, kind)
        elif not any(problem.is_fatal for problem in problems):
            compiled, found = compiled_memory(
                program.program, program.aliases, memory.state, kind
            )
            problems += found
            memory = compiled or memory
    return TpuReport(
        checked.about,
        chip,
        cores,
        sum(int(tf.size(v)) for v in model.trainable_variables),
        problems,
        memory,
        flops,
        _time(model, kind, flops, memory, cores) if flops else None,
        platform,
        unchecked,
        time.perf_counter() - begin,
    )


def traced_step(model: Any, batch: Any) -> Any:
    """Traces the training step of a compiled model to a concrete function.

    `batch` are specifications of (inputs, targets), optionally with weights; the shapes fixed.
    """
    zeros = tf.nest.map_structure(lambda spec: tf.zeros(spec.shape, spec.dtype), batch)
    model._symbolic_build(data_batch=zeros)  # creates the variables of metrics, like `fit`
    step = tf.function(lambda data: model.train_step(data), autograph=False)
    return step.get_concrete_function(batch)


def step_variables(model: Any) -> list[Any]:
    """Returns TensorFlow's variables that a compiled model's step may use, each once."""
    kept = (*model.variables, *model.metrics_variables, *model.optimizer.variables)
    return list({id(variable.value): variable.value for variable in kept}.values())


def report_lines(report: TpuReport) -> str:
    """Formats a report for users."""
    verdict = "accepted" if report.is_accepted else "REFUSED"
    lines = [
        f"{verdict}: {report.about} a core, {report.cores} cores of {report.chip}; "
        f"{report.parameters:,} weights"
    ]
    if report.memory is not None:
        memory = report.memory
        lines.append(
            f"memory a core: {memory.total / GIB:.2f} GiB of "
            f"{tpu_chip(report.chip).memory / GIB:.0f}, {memory.state / GIB:.2f} of it weights and "
            f"optimizer ({memory.source})"
        )
    if report.time is not None:
        times = report.time
        lines.append(
            f"step: {report.flops / 1e12:.2f} TFLOP of matrix products; at best "
            f"{1e3 * times.ideal:.1f} ms (computing {1e3 * times.compute:.1f}, memory "
            f"{1e3 * times.memory:.1f}, sums over the cores {1e3 * times.links:.1f})"
        )
    for problem in report.problems:
        kind = problem.kind if problem.is_fatal else f"warning, {problem.kind}"
        lines += [f"{kind}: {problem.message}", f"  change: {problem.advice}"]
    lines.append(f"not checked: {'; '.join(report.unchecked)}")
    return "\n".join(lines)


def _time(
    model: Any, chip: TpuChip, flops: int, memory: StepMemory | None, cores: int
) -> StepTime:
    """Returns the shortest time; memory traffic is at least weights and state, read and written."""
    moved = None if memory is None else memory.moved
    state = 0 if memory is None else memory.state
    gradients = sum(int(tf.size(v)) for v in model.trainable_variables) * 4
    return step_time(chip, flops, moved or 2 * state, gradients, cores)
