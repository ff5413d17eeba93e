"""Check that a configuration would train on a TPU, without a TPU.

The checked step is `train_step` of the model that the run of the configuration trains: what each
core runs on its rows of a batch. It is traced with the shapes of these batches, inspected, lowered
with TensorFlow's own TPU kernels and compiled by the TPU's own compiler. If their packages are not
installed, it is lowered for the CPU, and the report lists what was not checked.
"""

import time
from dataclasses import asdict, dataclass
from typing import Any

import tensorflow as tf

from kbert.tpu_check import costs
from kbert.tpu_check.graph import TpuProblem, graph_problems, kernel_problems
from kbert.tpu_check.lowering import StepValues, has_tpu_kernels, load_tpu_kernels, lowered
from kbert.tpu_check.models import CheckedModel, checked_model
from kbert.tpu_check.tpu_chips import GIB, tpu_chip
from kbert.training.config.any_config import StoredConfig

_NEVER = ("how fast a TPU runs it", "the sums over the cores", "the input from the host")
_WITHOUT_KERNELS = (
    "which operations have a TPU kernel", "the memory that the step's own results need"
)


@dataclass(frozen=True)
class TpuReport:
    """Report of a check."""

    about: str  # the checked batch of a core, in words
    chip: str
    cores: int  # which share a batch
    parameters: int  # trainable ones
    problems: list[TpuProblem]
    memory: costs.StepMemory
    flops: int  # of the matrix products of a core's step
    time: costs.StepTime | None  # None if the FLOPs are unknown
    platform: str | None  # "TPU" or "CPU", for which the step was lowered; None if it was not
    unchecked: tuple[str, ...]
    seconds: float  # of the check

    @property
    def is_accepted(self) -> bool:
        """Returns whether the step would train: no problem is fatal."""
        return not any(problem.is_fatal for problem in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Returns the report in JSON types."""
        found = {"is_accepted": self.is_accepted, **asdict(self)}
        if self.time is not None:
            found["time"]["ideal"] = self.time.ideal
        return found


def check_config(config: StoredConfig, chip: str = "v5e", cores: int = 4) -> TpuReport:
    """Checks a configuration; raises a ValueError for one whose batches have no fixed shapes."""
    tpu_chip(chip)
    if cores < 1:
        raise ValueError(f"`cores` must be at least 1. Received: cores={cores}")
    return check_step(checked_model(config, cores), chip, cores)


def check_step(checked: CheckedModel, chip: str = "v5e", cores: int = 4) -> TpuReport:
    """Checks the training step of a model, with the batch of a core."""
    begin, kind, model = time.perf_counter(), tpu_chip(chip), checked.model
    traced = traced_step(model, checked.batch)
    variables, data = step_variables(model), tf.nest.flatten(checked.batch)
    problems = graph_problems(traced.graph)
    if has_tpu_kernels():
        load_tpu_kernels()
        problems += kernel_problems(traced.graph)
    memory = costs.least_memory(variables, model.trainable_variables, data)
    unchecked = _NEVER if has_tpu_kernels() else (*_NEVER, *_WITHOUT_KERNELS)
    flops, platform = 0, None
    if not problems:  # a later stage would only report the same in other words
        flops = costs.product_flops(traced.graph)
        program = lowered(StepValues(traced, variables), data)
        platform, problems = program.platform, list(program.problems)
        if program.program is None:
            problems += costs.memory_problems(memory, kind)
        elif not any(problem.is_fatal for problem in problems):
            compiled, refusals = costs.compiled_memory(
                program.program, program.aliases, memory.state, kind
            )
            problems += refusals
            memory = compiled or memory
    parameters = sum(int(tf.size(v)) for v in model.trainable_variables)
    moved = memory.moved or 2 * memory.state  # at least weights and state, read and written
    shortest = costs.step_time(kind, flops, moved, 4 * parameters, cores) if flops else None
    found = (checked.about, chip, cores, parameters, problems, memory, flops, shortest, platform)
    return TpuReport(*found, unchecked, time.perf_counter() - begin)


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
    memory, times = report.memory, report.time
    lines = [
        f"{verdict}: {report.about} a core, {report.cores} cores of {report.chip}; "
        f"{report.parameters:,} weights",
        f"memory a core: {memory.total / GIB:.2f} GiB of "
        f"{tpu_chip(report.chip).memory / GIB:.0f}, {memory.state / GIB:.2f} of it weights and "
        f"optimizer ({memory.source})",
    ]
    if times is not None:
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
