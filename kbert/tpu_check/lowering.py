"""Lowering of a training step to XLA: for a TPU, or for the CPU if there are no TPU kernels.

Lowering for a TPU without a TPU does not support variables: nothing holds them. So the traced graph
of the step gets its variables as arguments and returns their new values.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import tensorflow as tf
from tensorflow.python.eager.polymorphic_function import compiler_ir  # has no public name

from kbert.tpu_check.graph import DYNAMIC, TpuProblem

FLOAT64, CUSTOM_CALL, LOWERING = "float64", "custom call", "lowering"
_CUSTOM = re.compile(r'custom_call_target="([^"]+)"')
# Hints to the compiler, which TPUs support.
_KNOWN_CALLS = ("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape")
_SOURCE = re.compile(r'op_name="([^"]*)"')
# Operations that assign a variable -> the operation of its value and the given one.
_ASSIGNED = {"AssignVariableOp": None, "AssignAddVariableOp": "AddV2", "AssignSubVariableOp": "Sub"}
_ADAM = "ResourceApplyAdam"
_READ = "ReadVariableOp"


def adam_update(*given: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns what TensorFlow's kernel `ResourceApplyAdam` computes: the new weight, m and v.

    Source: the documentation of `tf.raw_ops.ResourceApplyAdam`, whose arguments it takes.
    """
    variable, momentum, velocity, power_1, power_2, rate, beta_1, beta_2, epsilon, gradient = given
    scaled = rate * tf.sqrt(1.0 - power_2) / (1.0 - power_1)
    momentum = momentum + (gradient - momentum) * (1.0 - beta_1)
    velocity = velocity + (tf.square(gradient) - velocity) * (1.0 - beta_2)
    return variable - scaled * momentum / (tf.sqrt(velocity) + epsilon), momentum, velocity


class StepValues:
    """A traced step as a function of the values of its variables and of its data.

    `variables` are the TensorFlow variables that it uses, in the order of the arguments, and
    `written` the indices of those that it writes. Raises a ValueError for a step that captures
    another resource, or uses a variable by an operation that is not supported here.
    """

    def __init__(self, traced: Any, variables: Iterable[Any]) -> None:
        graph = traced.graph
        native = [*graph.variables, *variables]
        known = {id(variable.handle): variable for variable in native}
        held = [(outer, inner) for outer, inner in graph.captures if outer.dtype == tf.resource]
        strange = [inner.name for outer, inner in held if id(outer) not in known]
        if strange:
            raise ValueError(
                "the step must take no resource from outside but the variables of model and "
                f"optimizer. Received also: {', '.join(strange)}"
            )
        self.variables = [known[id(outer)] for outer, _ in held]
        self._places = {inner.op.name: number for number, (_, inner) in enumerate(held)}
        self._constants = {
            inner.name: outer for outer, inner in graph.captures if outer.dtype != tf.resource
        }
        taken = {inner.name for _, inner in graph.captures}
        self._data = [tensor.name for tensor in graph.inputs if tensor.name not in taken]
        self._outputs = [tensor.name for tensor in graph.outputs]
        self._definition, self._after = self._without_variables(graph)
        self.written = sorted(self._after)

    def __call__(self, values: list[tf.Tensor], *data: tf.Tensor) -> list[tf.Tensor]:
        """Runs one step, as graph code, from the values of `variables` and the flattened batch.

        Returns the new values of the variables that are `written`, and then the step's results.
        """
        given = {f"{name}:0": values[number] for name, number in self._places.items()}
        given |= dict(zip(self._data, data)) | self._constants
        # An unused input would be an error.
        given = {name: tensor for name, tensor in given.items() if name in self._read}
        names = [self._after[number] for number in self.written] + self._outputs
        return tf.graph_util.import_graph_def(self._definition, given, names, name="")

    def _without_variables(self, graph: Any) -> tuple[Any, dict[int, str]]:
        """Returns the graph with variables replaced by values, and the names of the last values."""
        definition = graph.as_graph_def()
        nodes = {node.name: node for node in definition.node}
        current = {number: name for name, number in self._places.items()}
        written: dict[int, str] = {}
        self._functions: dict[Any, Any] = {}  # TensorFlow deletes those without a reference
        # Operations are in the order in which Python made them, which is the order of effects.
        for operation in graph.get_operations():
            node, kind = nodes[operation.name], operation.type
            names = [tensor.op.name for tensor in operation.inputs]
            met = [self._places[name] for name in names if name in self._places]
            if not met:
                continue
            first = met[0]
            if kind == _READ:
                _rewrite(node, "Identity", [current[first]], operation.outputs[0].dtype)
            elif kind in _ASSIGNED:
                value, change = node.input[1], _ASSIGNED[kind]
                inputs = [value] if change is None else [current[first], value]
                _rewrite(node, change or "Identity", inputs, operation.inputs[1].dtype)
                current[first] = written[first] = node.name
            elif kind == _ADAM:
                inputs = [current[number] for number in met] + list(node.input[3:10])
                _call_adam(node, inputs, operation.inputs[9].dtype, self._functions)
                for place, number in enumerate(met):
                    current[number] = written[number] = f"{node.name}:{place}"
            else:
                raise ValueError(
                    f"the step must meet its variables by {_READ}, {', '.join(_ASSIGNED)} and "
                    f"{_ADAM} alone. Received: {kind} {operation.name!r}, as gradients that "
                    "accumulate over several batches need it"
                )
        arguments = {tensor.op.name for tensor in graph.inputs}
        kept = [node for node in definition.node if node.name not in arguments]
        del definition.node[:]  # arguments come from outside: as operations they have no kernel
        definition.node.extend(kept)
        self._read = {_tensor(name) for node in kept for name in node.input}
        return definition, {n: _tensor(name) for n, name in written.items()}


def _tensor(name: str) -> str:
    return name if ":" in name else f"{name}:0"


def _rewrite(node: Any, kind: str, inputs: list[str], dtype: tf.DType) -> None:
    """Replaces the operation of a node, and keeps its control inputs."""
    waits = [name for name in node.input if name.startswith("^")]
    del node.input[:]
    node.input.extend([*inputs, *waits])
    node.op = kind
    node.attr.clear()
    node.attr["T"].type = dtype.as_datatype_enum


def _call_adam(node: Any, inputs: list[str], dtype: tf.DType, library: dict[Any, Any]) -> None:
    """Replaces the operation of a node by a call of `adam_update`."""
    if dtype not in library:
        specs = [tf.TensorSpec(None, dtype)] * len(inputs)
        library[dtype] = tf.function(adam_update, autograph=False).get_concrete_function(*specs)
    _rewrite(node, "PartitionedCall", inputs, dtype)
    node.attr.clear()
    node.attr["Tin"].list.type.extend([dtype.as_datatype_enum] * len(inputs))
    node.attr["Tout"].list.type.extend([dtype.as_datatype_enum] * 3)
    node.attr["f"].func.name = library[dtype].function_def.signature.name


@dataclass(frozen=True)
class Lowered:
    """A step lowered to XLA."""

    platform: str  # "TPU" or "CPU", whose kernels were used
    problems: list[TpuProblem]
    program: bytes | None  # StableHLO; None if lowering failed or was for the CPU
    aliases: dict[int, int]  # index of each result that is written in place -> of its argument


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
    """Lowers a step with its flattened batch, for a TPU if this TensorFlow can, or for the CPU."""
    platform = "TPU" if has_tpu_kernels() else "CPU"
    count = len(step.variables)
    specs = [*(tf.TensorSpec(one.shape, one.dtype) for one in step.variables), *data]
    whole = tf.function(
        lambda *given: step(list(given[:count]), *given[count:]), jit_compile=True, autograph=False
    ).get_concrete_function(*specs)
    generate = compiler_ir.from_concrete_function(whole, specs)
    aliases = dict(enumerate(step.written))
    try:
        text, program = generate(stage="hlo", platform_name=platform), None
        if platform == "TPU":
            program = generate(stage="stablehlo_serialized", platform_name=platform)
    except (ValueError, tf.errors.OpError) as error:
        reason = str(error).strip().splitlines()[0]
        about = f"XLA does not take the step for a {platform}: {reason}"
        refusal = TpuProblem(LOWERING, about, "change the operation that it names")
        return Lowered(platform, [refusal], None, aliases)
    return Lowered(platform, hlo_problems(text), program, aliases)


def hlo_problems(text: str) -> list[TpuProblem]:
    """Finds parts of XLA's program, as HLO, that a TPU would refuse, or be slow at."""
    lines = text.splitlines()
    dynamic = _names(line for line in lines if "[<=" in line.replace(" ", ""))
    doubles = _names(line for line in lines if "f64[" in line)
    calls = ", ".join(sorted(set(_CUSTOM.findall(text)) - set(_KNOWN_CALLS)))
    problems = []
    if dynamic:
        about = f"XLA bounds a shape that is known only when the step runs: {dynamic}"
        advice = "give it a result of a fixed shape: pad, and mask what is too much"
        problems.append(TpuProblem(DYNAMIC, about, advice))
    if doubles:
        about = f"the step computes in float64, which a TPU emulates slowly: {doubles}"
        advice = "use float32, or bfloat16 by precision: mixed_bfloat16"
        problems.append(TpuProblem(FLOAT64, about, advice, is_fatal=False))
    if calls:
        about = f"the step calls code outside of XLA: {calls}"
        advice = "compute it from TensorFlow's own operations"
        problems.append(TpuProblem(CUSTOM_CALL, about, advice))
    return problems


def _names(lines: Any) -> str:
    """Returns a few of the operations that lines of HLO come from."""
    found = sorted({match[1] for line in lines if (match := _SOURCE.search(line))})
    return ", ".join([*found[:3], "..."] if len(found) > 3 else found)
