"""`OnnxGraph`, in which a network is written down node by node, with the weights of Keras layers.

All ops are of ONNX's own domain. They stand in the patterns that ONNX Runtime joins into one op
where it has one: attention, GELU with the bias before it, LayerNorm with the sum before it.

Shapes: B batch, T length, D width of a layer's input.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from kbert.extras import install_extra

# The highest one of which ONNX Runtime joins attention when it loads a model; any runtime reads it.
OPSET = 12
# The version of the file format that came with it.
_IR_VERSION = 7


def import_onnx() -> Any:
    """Imports onnx; raises an ImportError that names the extra without it."""
    try:
        import onnx
    except ImportError as error:
        message = f"The format onnx needs the package onnx: {install_extra('onnx')}"
        raise ImportError(message) from error
    return onnx


class OnnxGraph:
    """Nodes, weights, inputs and outputs of a network; values are known by their names."""

    def __init__(self) -> None:
        self._onnx = import_onnx()
        self._nodes: list[Any] = []
        self._weights: dict[str, np.ndarray] = {}
        # By the id of a variable, the name of its weight; and itself, so that the id stays its own.
        self._of_variables: dict[int, tuple[str, Any]] = {}
        self.inputs: dict[str, tuple[str, list[str | int]]] = {}  # types and axes
        self.outputs: dict[str, list[str | int]] = {}

    def input(self, name: str, axes: Sequence[str | int], dtype: str = "int64") -> str:
        """Adds an input, with axes of any size (a name) or of a given one."""
        self.inputs[name] = dtype, list(axes)
        return name

    def output(self, name: str, value: str, axes: Sequence[str | int]) -> None:
        """Makes a value an output of floats, with axes of any size (a name) or of a given one."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self.outputs[name] = list(axes)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node with one output, and returns the name of that."""
        name = f"{kind}_{len(self._nodes)}"
        self._nodes.append(self._onnx.helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    def number(self, value: Any, dtype: str = "float32") -> str:
        """Returns a constant: a number, or a list of them."""
        array = np.asarray(value, dtype)
        name = "_".join(["constant", dtype, str(array.ndim), *map(str, array.reshape(-1))])
        self._weights[name] = array
        return name

    def whole(self, value: Any) -> str:
        """Returns a constant of whole numbers, as shapes and places are."""
        return self.number(value, "int64")

    def array(self, name: str, value: Any) -> str:
        """Returns an array under a name of its own, as float32."""
        self._weights[name] = np.asarray(value, "float32")
        return name

    def weight(self, variable: Any, part: Callable[[Any], Any] | None = None) -> str:
        """Returns a variable of Keras as float32, stored once however often it is asked for.

        `part` maps its array to what is wanted of it; such a part is stored for each call.
        """
        if part is None and id(variable) in self._of_variables:
            return self._of_variables[id(variable)][0]
        array = np.asarray(variable).astype("float32")
        name = f"{variable.path}/{len(self._weights)}"
        self._weights[name] = np.ascontiguousarray(array if part is None else part(array))
        if part is None:
            self._of_variables[id(variable)] = name, variable
        return name

    def linear(self, inputs: str, layer: Any, added: str | None = None) -> str:
        """Applies a `Linear` to (..., D); `added` is added before its activation."""
        product = self.op("MatMul", inputs, self.weight(layer.kernel))
        if layer.bias is not None:
            product = self.op("Add", product, self.weight(layer.bias))
        if added is not None:
            product = self.op("Add", product, added)
        name = layer.activation
        return product if name is None else _ACTIVATIONS[name](self, product)

    def layer_norm(self, inputs: str, layer: Any) -> str:
        """Applies a `LayerNorm` to (..., D)."""
        mean = self.op("ReduceMean", inputs, axes=[-1], keepdims=1)
        centred = self.op("Sub", inputs, mean)
        squares = self.op("Pow", centred, self.number(2.0))
        variance = self.op("ReduceMean", squares, axes=[-1], keepdims=1)
        deviation = self.op("Sqrt", self.op("Add", variance, self.number(layer.epsilon)))
        scaled = self.op("Mul", self.op("Div", centred, deviation), self.weight(layer.gamma))
        return self.op("Add", scaled, self.weight(layer.beta))

    def model(self, name: str, metadata: Mapping[str, str], producer_version: str) -> Any:
        """Returns the finished, checked network, an `onnx.ModelProto`."""
        onnx, make = self._onnx, self._onnx.helper.make_tensor_value_info
        weights = [onnx.numpy_helper.from_array(array, key) for key, array in self._weights.items()]
        kinds = {"int64": onnx.TensorProto.INT64, "float32": onnx.TensorProto.FLOAT}
        inputs = [make(key, kinds[kind], axes) for key, (kind, axes) in self.inputs.items()]
        outputs = [make(key, onnx.TensorProto.FLOAT, axes) for key, axes in self.outputs.items()]
        made = onnx.helper.make_model(
            onnx.helper.make_graph(self._nodes, name, inputs, outputs, weights),
            opset_imports=[onnx.helper.make_opsetid("", OPSET)],
            ir_version=_IR_VERSION,
            producer_name="kbert",
            producer_version=producer_version,
        )
        onnx.helper.set_model_props(made, dict(metadata))
        onnx.checker.check_model(made)
        return made


def _gelu(graph: OnnxGraph, x: str) -> str:
    inner = graph.op("Erf", graph.op("Div", x, graph.number(math.sqrt(2.0))))
    bent = graph.op("Mul", x, graph.op("Add", inner, graph.number(1.0)))
    return graph.op("Mul", bent, graph.number(0.5))


def _gelu_approximate(graph: OnnxGraph, x: str) -> str:
    cubic = graph.op("Mul", graph.op("Pow", x, graph.number(3.0)), graph.number(0.044715))
    inner = graph.op("Mul", graph.op("Add", x, cubic), graph.number(math.sqrt(2.0 / math.pi)))
    bent = graph.op("Add", graph.op("Tanh", inner), graph.number(1.0))
    return graph.op("Mul", graph.op("Mul", x, graph.number(0.5)), bent)


def _quick_gelu(graph: OnnxGraph, x: str) -> str:
    return graph.op("Mul", x, graph.op("Sigmoid", graph.op("Mul", x, graph.number(1.702))))


# By the names of `kbert.layers.linear`.
_ACTIVATIONS: dict[str, Callable[[OnnxGraph, str], str]] = {
    "gelu": _gelu,
    "gelu_approximate": _gelu_approximate,
    "quick_gelu": _quick_gelu,
    "relu": lambda graph, x: graph.op("Relu", x),
    "tanh": lambda graph, x: graph.op("Tanh", x),
    "silu": lambda graph, x: graph.op("Mul", x, graph.op("Sigmoid", x)),
}
