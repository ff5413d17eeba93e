"""Signatures of an export as functions of TensorFlow's runtime, without Python objects of nodes.

`tf.saved_model.load` makes an object of each node, and gives each function a copy of all that it
calls. Here the runtime gets each function once, as in a server: an export is loaded in a fraction
of the time, and one whose weights are constants takes a fraction of the memory.

Each export has a runtime of its own, as BatchFunction keeps its graph, with the constants in it, as
long as the runtime lives. Inputs and answers are tensors of the program's runtime.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf
from tensorflow.python.eager import context  # these have no public names
from tensorflow.python.eager.cancellation import CancellationManager
from tensorflow.python.eager.execute import execute, execute_with_cancellation

from kbert.serving.format.messages import client_signatures
from kbert.serving.format.signatures import WEIGHTS

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
# Two threads read weights twice as fast as one; more are no faster.
_READERS = 2


class OtherSavedModel(Exception):
    """A SavedModel of another form than kbert's: only `tf.saved_model.load` can load it."""


class RegisteredFunctions:
    """The signatures of an export, in memory while this object lives; thread-safe.

    Args:
        path: the version folder, with the weights.
        meta_graph: its MetaGraphDef.

    Raises:
        OtherSavedModel: a signature reads more than constants and variables of `WEIGHTS`, as may be
            in a SavedModel that kbert did not write.
        tf.errors.OpError: the weights are not there, or damaged.
    """

    def __init__(self, path: Path, meta_graph: Any) -> None:
        graph = meta_graph.object_graph_def
        nodes = {node.name: node for node in meta_graph.graph_def.node}
        self._calls = {
            name: _call(signature, nodes, graph.concrete_functions)
            for name, signature in client_signatures(meta_graph)
        }
        read = {one for call in self._calls.values() for one in call.captured}
        # With the settings of the program's own, such as its numbers of threads.
        self._runtime = context.Context(context.context().config)
        for function in meta_graph.graph_def.library.function:
            self._runtime.add_function_def(function)
        self._values = _values(graph, nodes, read, path, self._runtime)

    def run(
        self,
        signature: str,
        inputs: Mapping[str, tf.Tensor],
        cancellation: CancellationManager | None = None,
    ) -> dict[str, tf.Tensor]:
        """Calls a signature with a tensor for each of its inputs.

        Raises `tf.errors.CancelledError` soon after `cancellation.start_cancel()`.
        """
        call = self._calls[signature]
        arguments = [inputs[name] for name in call.inputs]
        arguments += [self._values[one] for one in call.captured]
        options = itertools.chain(*self._runtime.function_call_options.as_attrs().items())
        answers = execute_with_cancellation(
            call.function,
            call.num_outputs,
            arguments,
            tuple(options),
            self._runtime,
            # Not `CancellationManagerContext`, which is one for all threads.
            cancellation or CancellationManager(),
        )
        return {name: answers[place] for name, place in call.outputs.items()}


class _Call(NamedTuple):
    """The call of a signature's function; `captured` are objects of the graph, by number."""

    function: str
    inputs: list[str]
    captured: list[int]
    outputs: dict[str, int]
    num_outputs: int


def _call(signature: Any, nodes: Mapping[str, Any], functions: Mapping[str, Any]) -> _Call:
    outputs = {name: info.name.split(":") for name, info in signature.outputs.items()}
    called = {node for node, _ in outputs.values()}
    node = nodes.get(called.pop()) if len(called) == 1 else None
    if node is None or node.op not in _CALLS or node.attr["f"].func.name not in functions:
        raise OtherSavedModel("A signature is more than the call of a function.")
    given = {info.name.partition(":")[0]: name for name, info in signature.inputs.items()}
    inputs = [given[one] for one in node.input if one in given]
    function = node.attr["f"].func.name
    captured = list(functions[function].bound_inputs)
    places = {name: int(place) for name, (_, place) in outputs.items()}
    return _Call(function, inputs, captured, places, len(node.attr["Tout"].list.type))


def _values(
    graph: Any, nodes: Mapping[str, Any], ids: Iterable[int], path: Path, runtime: context.Context
) -> dict[int, tf.Tensor]:
    """Returns the constants, and the handles of the variables, of these objects of a graph."""
    numbers = {
        weight.node_id: weight.local_name
        for child in graph.nodes[0].children
        if child.local_name == WEIGHTS
        for weight in graph.nodes[child.node_id].children
    }
    found, variables = {}, {}
    for i in ids:
        kind = graph.nodes[i].WhichOneof("kind")
        if kind == "constant":
            constant = nodes[graph.nodes[i].constant.operation].attr["value"].tensor
            found[i] = tf.constant(tf.make_ndarray(constant))
        elif kind == "variable" and i in numbers:
            variables[i] = graph.nodes[i].variable.dtype
        else:
            raise OtherSavedModel(f"A signature reads {kind} {i}.")
    keys = [f"{WEIGHTS}/{numbers[i]}/.ATTRIBUTES/VARIABLE_VALUE" for i in variables]
    read = _read(str(path / "variables" / "variables"), keys, list(variables.values()))
    return found | {i: _handle(value, runtime) for i, value in zip(variables, read)}


def _read(prefix: str, keys: Sequence[str], dtypes: Sequence[int]) -> list[tf.Tensor]:
    def read(reader: int) -> list[tf.Tensor]:
        names, types = keys[reader::_READERS], dtypes[reader::_READERS]
        if not names:
            return []
        given = {"tensor_names": names, "shape_and_slices": [""] * len(names), "dtypes": types}
        return list(tf.raw_ops.RestoreV2(prefix=prefix, **given))

    found: list[Any] = [None] * len(keys)
    with ThreadPoolExecutor(_READERS) as pool:
        for reader, tensors in enumerate(pool.map(read, range(_READERS))):
            found[reader::_READERS] = tensors
    return found


def _handle(value: tf.Tensor, runtime: context.Context) -> tf.Tensor:
    """Returns the handle of a new variable, which lives as long as the handle."""
    kind = ("dtype", value.dtype.as_datatype_enum)
    named = ("shape", value.shape.as_list(), "shared_name", context.anonymous_name())
    (handle,) = execute("VarHandleOp", 1, [], kind + named, runtime)
    execute("AssignVariableOp", 0, [handle, value], kind, runtime)
    return handle
