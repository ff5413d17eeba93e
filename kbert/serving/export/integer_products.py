"""Products of integers in the place of an encoder's dense layers, as graph code.

y = x W: each row of x is divided by its largest magnitude, so that a row's answer does not depend
on what else is in the batch, and rounded to codes in [-127, 127]; W has a scale for each column and
codes in [-63, 63]. The sums are int32, and exact. Source: Jacob et al. 2018 (arXiv:1712.05877),
section 2.2; a scale for each token as Dettmers et al. 2022 (arXiv:2208.07339), section 2.1.

Seven bits of weights: where a processor lacks VNNI, oneDNN adds two products in 16 bits, which hold
2 x 255 x 63 and not 2 x 255 x 127.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import keras
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue
from tensorflow.python.framework import kernels

from kbert.layers.linear import Linear, activate
from kbert.pipelines.inference import read_once

# oneDNN's product in TensorFlow for x86, and so in TF Serving; not in `tf.raw_ops`.
INTEGER_OP = "_QuantizedMatMul"
# Largest codes of rows and of weights.
MOST_OF_ROWS, MOST_OF_WEIGHTS = 127, 63
# With fewer the quantization of the rows costs more than the product.
_LEAST_WIDTH = 64
# The op's scales are the bounds that it is given, divided by this.
_DIVISOR = 127.0
# The method of a layer that is replaced while a graph is traced.
_CALL = Linear.call.__name__


class Codes(Protocol):
    """A matrix (in, out) as int8 with a float32 scale (1, out) for each column."""

    codes: Any
    scales: Any


def has_integer_products() -> bool:
    """Returns whether the installed TensorFlow has the op: on x86 it does."""
    return bool(kernels.get_registered_kernels_for_op(INTEGER_OP).kernel)


def integer_layers(model: Any) -> list[Linear]:
    """Returns the dense layers of a model's encoder that multiply integers in an int8 export."""
    encoder = getattr(model, "encoder", None)
    if not isinstance(encoder, keras.Model) or not has_integer_products():
        return []
    layers = (layer for layer in encoder._flatten_layers() if isinstance(layer, Linear))
    return [layer for layer in layers if min(layer.kernel.shape) >= _LEAST_WIDTH]


def integer_kernels(model: Any) -> set[int]:
    """Returns the identities of the kernels of `integer_layers`, whose codes have seven bits."""
    return {id(layer.kernel) for layer in integer_layers(model)}


@contextmanager
def integer_products(
    layers: Iterable[Linear], stored: Callable[[Any], Codes | None]
) -> Iterator[None]:
    """Makes dense layers multiply integers; `stored` gives the codes of a kernel, or None."""
    with ExitStack() as stack:
        for layer in layers:
            weights = stored(layer.kernel)
            if weights is not None and _CALL not in vars(layer):  # ALBERT's layers are one
                setattr(layer, _CALL, _call_of(layer, weights))
                stack.callback(delattr, layer, _CALL)
        yield


def _call_of(layer: Linear, weights: Codes) -> Callable[..., tf.Tensor]:
    """Returns what a layer's `call` does, with integers."""
    is_gelu = layer.activation == "gelu"
    # No op of oneDNN takes in this GELU, x Phi(x): with u = x / sqrt(2) it is u (erf(u) + 1) /
    # sqrt(2), which passes over the widest activations once less than a formula of x.
    factor = math.sqrt(0.5) if is_gelu else 1.0

    def call(inputs: Any, training: bool | None = None, added: Any = None) -> tf.Tensor:
        rows = tf.reshape(inputs, (-1, inputs.shape[-1]))
        codes, scales = read_once(weights.codes), read_once(weights.scales)
        outputs = integer_product(rows, codes, scales, factor)
        for term in (layer.bias, added):
            if term is not None:
                outputs += tf.convert_to_tensor(term) * factor if is_gelu else term
        if is_gelu:
            outputs *= tf.math.erf(outputs) * factor + factor
        else:
            outputs = activate(outputs, layer.activation, training)
        return tf.reshape(outputs, (*tf.unstack(tf.shape(inputs))[:-1], layer.units))

    return call


def integer_product(
    rows: tf.Tensor, codes: tf.Tensor, scales: tf.Tensor, factor: float = 1.0
) -> tf.Tensor:
    """Returns the product of rows with a quantized matrix, as graph code.

    Args:
        rows: float32 (R, in).
        codes: int8 (in, out), in [-63, 63].
        scales: float32 (1, out): the matrix is codes * scales.
        factor: what the product is multiplied by.

    Returns:
        float32 (R, out).
    """
    largest = tf.reduce_max(tf.abs(rows), axis=-1, keepdims=True)
    # A row of zeros stays one.
    scaled = rows * tf.math.divide_no_nan(float(MOST_OF_ROWS), largest)
    quantized = tf.bitcast(tf.cast(tf.round(scaled), tf.int8), tf.qint8)
    # A number of `quantized` stands for `largest` / 127.
    return _multiplied(quantized, tf.bitcast(codes, tf.qint8), scales, factor) * largest


def _multiplied(rows: tf.Tensor, codes: tf.Tensor, scales: tf.Tensor, factor: float) -> tf.Tensor:
    """Returns rows codes scales factor / 127, float32 (R, out)."""
    units = codes.shape[-1]
    bias = tf.zeros((units,))
    # Bounds, of which the op takes the larger magnitude. The scales must be the same memory at each
    # request, not the outcome of an op: by their address oneDNN finds the kernel made before.
    bound = tf.constant(_DIVISOR * factor)
    inputs = [rows, codes, bias, bound, bound, scales, scales]
    attributes = {
        "Tdevice_inputs": _types(rows, codes, bias),
        "Thost_inputs": _types(*inputs[3:]),
        "Tdevice_outputs": _types(bias),
        "Thost_outputs": _types(),
        "T1": AttrValue(type=tf.qint8.as_datatype_enum),
        "T2": AttrValue(type=tf.qint8.as_datatype_enum),
        "fused_ops": AttrValue(list=AttrValue.ListValue(s=[b"BiasAdd", b"Dequantize"])),
    }
    graph = tf.compat.v1.get_default_graph()
    made = graph.create_op(INTEGER_OP, inputs, [tf.float32], name="product", attrs=attributes)
    (product,) = made.outputs
    product.set_shape((rows.shape[0], units))
    return product


def _types(*tensors: tf.Tensor) -> AttrValue:
    enums = [tensor.dtype.as_datatype_enum for tensor in tensors]
    return AttrValue(list=AttrValue.ListValue(type=enums))
