"""Problems for a TPU in the graph of a step: strings, dynamic shapes, missing kernels.

A TPU program is compiled for fixed shapes and only holds numbers. Each problem names the operation
and the line of Python that made it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import kernels  # the registry has no public name

STRING, DYNAMIC, KERNEL = "string", "dynamic shape", "unsupported operation"
# The device of libtpu's kernels, and operations without a kernel that the compiler itself follows.
_TPU_COMPILER = "XLA_TPU_JIT"
_FOLLOWED = (
    *("PartitionedCall", "StatefulPartitionedCall", "If", "StatelessIf", "While"),
    *("StatelessWhile", "Case", "StatelessCase", "Placeholder", "NoOp"),
)
_LIBRARIES = ("/tensorflow/", "/keras/", "<frozen", "<__array_function__")
_ADVICE = {
    STRING: "do it in tf.data, on the host, and give the step numbers alone",
    DYNAMIC: "give it a result of a fixed shape: pad the batch (fixed_length, buckets), and use "
    "tf.where(mask, x, 0) where tf.boolean_mask, tf.unique or tf.where(mask) stands",
    KERNEL: "compute it from operations that have a TPU kernel, or in tf.data on the host",
}


@dataclass(frozen=True)
class TpuProblem:
    """A reason why a TPU would refuse a training step, or be slow at it."""

    kind: str  # such as "string"
    message: str  # with the location
    advice: str  # what to change
    is_fatal: bool = True  # otherwise it is a warning


def graph_problems(graph: Any) -> list[TpuProblem]:
    """Finds strings, and shapes that are not fixed, in the `FuncGraph` of a step of fixed shapes.

    There is a problem for each operation that introduces one, not for those that pass it on.
    """
    problems = []
    for operation in _operations(graph):
        outputs, inputs = list(operation.outputs), list(operation.inputs)
        strings = [x for x in (*outputs, *inputs) if x.dtype == tf.string]
        if strings and not any(x.dtype == tf.string for x in inputs if x.op.type != "Const"):
            problems.append(_problem(STRING, operation, "handles strings"))
        is_passed_on = any(_is_dynamic(tensor) for tensor in inputs)
        if any(_is_dynamic(tensor) for tensor in outputs) and not is_passed_on:
            problems.append(_problem(DYNAMIC, operation, "has a result whose shape is not fixed"))
    return _first_of_each(problems)


def kernel_problems(graph: Any) -> list[TpuProblem]:
    """Finds operations of a `FuncGraph` without a TPU kernel in TensorFlow's registry.

    Only tensorflow-tpu has the kernels, and only once something has been lowered.
    """
    problems = []
    for operation in _operations(graph):
        if operation.type not in _FOLLOWED and not has_tpu_kernel(operation):
            types = sorted({tensor.dtype.name for tensor in operation.inputs})
            about = f"has no TPU kernel for {', '.join(types) or 'its attributes'}"
            problems.append(_problem(KERNEL, operation, about))
    return _first_of_each(problems)


def has_tpu_kernel(operation: Any) -> bool:
    """Returns whether a registered TPU kernel takes a `tf.Operation` with its types."""
    given = operation.node_def.attr
    found = kernels.get_registered_kernels_for_op(operation.type).kernel
    return any(
        all(
            given[limit.name].type in limit.allowed_values.list.type
            for limit in kernel.constraint
            if given[limit.name].type
        )
        for kernel in found
        if kernel.device_type == _TPU_COMPILER
    )


def _operations(graph: Any) -> Iterator[Any]:
    """Yields the operations of a graph and of its functions."""
    yield from graph.get_operations()
    for name in {f.signature.name for f in graph.as_graph_def().library.function}:
        inner = getattr(graph._get_function(name), "graph", None)
        if inner is not None and inner is not graph:
            yield from inner.get_operations()


def _is_dynamic(tensor: Any) -> bool:
    is_handle = tensor.dtype in (tf.resource, tf.variant)
    # The condition of a loop has a placeholder for all that the loop carries, read or not.
    is_unread = tensor.op.type == "Placeholder" and not tensor.consumers()
    return not is_handle and not is_unread and not tensor.shape.is_fully_defined()


def _problem(kind: str, operation: Any, about: str) -> TpuProblem:
    where = f" ({line})" if (line := line_of(operation)) else ""
    return TpuProblem(kind, f"{operation.type} {operation.name!r} {about}{where}", _ADVICE[kind])


def line_of(operation: Any) -> str | None:
    """Returns file:number of the code outside TensorFlow and Keras that made an operation."""
    frames = reversed(list(operation.traceback or ()))  # of a gradient there may be none
    own = (one for one in frames if not any(library in one.filename for library in _LIBRARIES))
    return next((f"{one.filename}:{one.lineno}" for one in own), None)


def _first_of_each(problems: Iterable[TpuProblem]) -> list[TpuProblem]:
    """Removes problems with the same message."""
    return list({problem.message: problem for problem in problems}.values())
