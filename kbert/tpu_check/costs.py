"""The memory that a training step needs on a TPU, by the TPU's own compiler, and its time at best.

libtpu compiles ahead of time, without a TPU, through JAX: `jax.experimental.topologies` describes
the TPU, and its compile-only client takes StableHLO. Neither API is stable; the versions that work
together are listed in tpu/requirements.txt.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from kbert.tpu_check.graph import TpuProblem
from kbert.tpu_check.tpu_chips import GIB, TpuChip

MEMORY = "memory"
# Matrix products, and the attribute that transposes the first matrix.
_PRODUCTS = {"MatMul": "transpose_a"} | dict.fromkeys(
    ("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3"), "adj_x"
)
_NEEDED = re.compile(r"Used ([\d.]+)([KMG]) of ([\d.]+)([KMG]) hbm")
# The message for one result that is larger than the whole memory.
_RESULT = re.compile(r"Allocation \(size=(\d+)\) would exceed memory \(size=(\d+)\)")
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}
_ADVICE = (
    "lower batch_size (a core has batch_size / cores rows), max_sequence_length or "
    "max_predictions; set precision: mixed_bfloat16 or gradient_checkpointing: true; or take a "
    "chip with more memory"
)


@dataclass(frozen=True)
class StepMemory:
    """A step's use of a core's memory, in bytes."""

    total: int  # the peak
    state: int  # weights, the optimizer's state and all else that stays from step to step
    source: str  # "TPU compiler", or "lower bound" without it
    moved: float | None = None  # memory traffic, estimated by the compiler
    flops: float | None = None  # of all operations of the step, counted by the compiler


def least_memory(variables: Any, trainable: Any, batch: Any) -> StepMemory:
    """Returns a lower bound, without a compiler: what must exist when the weights are updated.

    That are all variables, a gradient of each trainable one, and the batch.
    """
    state, gradients, data = (sum(map(_bytes, some)) for some in (variables, trainable, batch))
    return StepMemory(state + gradients + data, state, "lower bound")


def memory_problems(memory: StepMemory, chip: TpuChip) -> list[TpuProblem]:
    """Returns a problem if the memory of a step exceeds a chip's."""
    if memory.total <= chip.memory:
        return []
    bound = "at least " if memory.source == "lower bound" else ""
    needed = f"{bound}{memory.total / GIB:.2f} GiB a core"
    about = f"the step needs {needed}, and a {chip.name} has {chip.memory / GIB:.0f}"
    return [TpuProblem(MEMORY, about, _ADVICE)]


def compiled_memory(
    program: bytes, aliases: dict[int, int], state: int, chip: TpuChip
) -> tuple[StepMemory | None, list[TpuProblem]]:
    """Compiles a step, as StableHLO, for one core of a TPU.

    `aliases` maps the index of each result that is written in place to that of its argument;
    `state` are the bytes of its variables. The memory is None if the compiler refused the step.
    """
    from jax._src import compiler
    from jax._src.lib import _jax, xla_client
    from jax.experimental import topologies

    topology = topologies.get_topology_desc(platform="tpu", topology_name=chip.topology)
    device: Any = topology.devices[0]
    options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
    try:
        executable = device.client.compile(
            _in_place(program, aliases), xla_client.DeviceList((device,)), options
        )
    except _jax.XlaRuntimeError as error:
        return None, [refused(str(error), chip)]
    found = executable.get_compiled_memory_stats()
    costs = executable.cost_analysis()
    sizes = (
        found.argument_size_in_bytes,
        found.output_size_in_bytes - found.alias_size_in_bytes,
        found.temp_size_in_bytes,
        found.generated_code_size_in_bytes,
    )
    counted = (costs.get("bytes accessed"), costs.get("flops"))
    memory = StepMemory(sum(sizes), state, "TPU compiler", *counted)
    return memory, memory_problems(memory, chip)


def refused(message: str, chip: TpuChip) -> TpuProblem:
    """Converts the message of the compiler's error to a problem."""
    sizes, one = _NEEDED.search(message), _RESULT.search(message)
    if one is not None:
        result, given = (int(number) / GIB for number in one.groups())
        about = f"the step has a result of {result:.2f} GiB, and a {chip.name} has {given:.2f}"
    elif sizes is not None:
        pairs = (sizes.groups()[:2], sizes.groups()[2:])
        needed, given = (float(number) * _UNITS[unit] / GIB for number, unit in pairs)
        about = f"the step needs {needed:.2f} GiB a core, and a {chip.name} has {given:.2f} "
        about += "for programs"
    else:
        reason = message.strip().splitlines()[0]
        about = f"the compiler of the {chip.name} refuses the step: {reason}"
        return TpuProblem("compiler", about, _ADVICE)
    return TpuProblem(MEMORY, about, _ADVICE)


def _in_place(program: bytes, aliases: dict[int, int]) -> bytes:
    """Returns the program with results aliased to arguments, as variables are updated in place."""
    from jax._src.interpreters import mlir
    from jax._src.lib.mlir import ir

    with mlir.make_ir_context():
        module = ir.Module.parse(program)
        functions: list[Any] = list(module.body.operations)
        main = next(one for one in functions if one.attributes["sym_name"].value == "main")
        arguments = [dict((a.name, a.attr) for a in one) for one in _attributes(ir, main)]
        integer = ir.IntegerType.get_signless(32)
        for result, argument in aliases.items():
            arguments[argument]["tf.aliasing_output"] = ir.IntegerAttr.get(integer, result)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(one) for one in arguments])
        return mlir.module_to_bytecode(module)


def _attributes(ir: Any, function: Any) -> list[Any]:
    """Returns the attributes of each argument of a function."""
    if "arg_attrs" in function.attributes:
        return list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    count = len(ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value).inputs)
    return [[] for _ in range(count)]


def _bytes(tensor: Any) -> int:
    return math.prod(tensor.shape) * int(tf.as_dtype(tensor.dtype).size)


@dataclass(frozen=True)
class StepTime:
    """The shortest time of a step on a fully utilized chip, in seconds."""

    compute: float  # the matrix products at the chip's peak
    memory: float  # all memory traffic, or weights and state once where it is unknown
    links: float  # the all-reduce of gradients over the cores; 0 for one core

    @property
    def ideal(self) -> float:
        """Returns the time of a step in which computing, memory and links overlap."""
        return max(self.compute, self.memory, self.links)


def step_time(
    chip: TpuChip, flops: float, moved_bytes: float, gradient_bytes: float, cores: int
) -> StepTime:
    """Returns the shortest time of a core's step of so many FLOPs and bytes of memory traffic.

    The gradients are all-reduced in a ring: each of n cores sends 2 (n - 1) / n of them.
    """
    sent = gradient_bytes * 2 * (cores - 1) / cores
    return StepTime(flops / chip.flops, moved_bytes / chip.bandwidth, sent / chip.links)


def product_flops(graph: Any) -> int:
    """Returns the FLOPs of the matrix products of a step's `FuncGraph` with fixed shapes.

    A product of (m, k) and (k, n) counts 2 m k n. Other operations (softmax, LayerNorm, the update)
    cost a TPU memory bandwidth, not time in its matrix units.
    """
    return sum(_flops(operation) for operation in graph.get_operations())


def _flops(operation: Any) -> int:
    if operation.type == "Einsum":
        return _einsum_flops(operation)
    if operation.type not in _PRODUCTS:
        return 0
    rows, columns = operation.inputs[0].shape.as_list()[-2:]
    inner = rows if operation.get_attr(_PRODUCTS[operation.type]) else columns
    return 2 * inner * math.prod(operation.outputs[0].shape.as_list())


def _einsum_flops(operation: Any) -> int:
    """Returns two FLOPs for each combination of all labels of an equation without an ellipsis."""
    terms = operation.get_attr("equation").decode().partition("->")[0].split(",")
    if len(terms) < 2 or any("." in term for term in terms):
        return 0
    sizes: dict[str, int] = {}
    for term, tensor in zip(terms, operation.inputs):
        sizes |= dict(zip(term.strip(), tensor.shape.as_list()))
    return 2 * math.prod(sizes.values())
