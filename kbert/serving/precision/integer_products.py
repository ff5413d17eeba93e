"""Products of integers in the place of those of layers, as graph code.

y = x W. W has codes in a byte and a float32 scale for each column; it may be the transposed table
of the embeddings, with a scale for each row of that. Each row of x has codes and a
step of its own, so that its answer does not depend on what else is in the batch. The sums are
int32, and exact. Source: Jacob et al. 2018 (arXiv:1712.05877), section 2.2; a scale for each token
as Dettmers et al. 2022 (arXiv:2208.07339), section 2.1.

Where a processor lacks VNNI, oneDNN adds two products in 16 bits, so that 2 |code of x| |code of
W| must be less than 2^15. Rows of both signs have codes in [1, 255], 128 for zero, and W has seven
bits, [-63, 63]. After an activation like GELU no number is less than a small constant: such rows
have codes in [0, 127], with steps that are no larger, and W has eight bits, [-127, 127].
Codes of rows have no sign, as oneDNN multiplies signed ones half as fast on such a processor.
"""

import functools
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import numpy as np
import tensorflow as tf
from tensorflow.core.framework.attr_value_pb2 import AttrValue

from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import Linear, activate
from kbert.pipelines.inference import read_once
from kbert.serving.precision.rounding import INTEGER_OP, Rounding, product_matrix

# The largest code of a row less that of zero.
_MOST_OF_ROWS = 127.0
_ZERO = 128.0
# The op's scales of rows and of columns are the bounds that it is given, divided by these.
_ROWS_DIVISOR, _COLUMNS_DIVISOR = 255.0, 127.0
# The methods of layers that are replaced while a graph is traced.
_CALL, _LOGITS = Linear.call.__name__, TokenEmbedding.logits.__name__


class Codes(Protocol):
    """A matrix (in, out) as int8 with a float32 scale (1, out) for each column.

    A table is transposed: (out, in) and (out, 1). `sums` (out,) float32 are those of the columns of
    the matrix, of what codes and scales stand for.
    """

    codes: Any
    scales: Any
    sums: np.ndarray
    rounding: Rounding
    is_table: bool


@contextmanager
def integer_products(
    layers: Iterable[Linear | TokenEmbedding], stored: Callable[[Any], Codes | None]
) -> Iterator[None]:
    """Makes layers multiply integers; `stored` gives the codes of a `product_matrix`, or None."""
    with ExitStack() as stack:
        for layer in layers:
            weights = stored(product_matrix(layer))
            method = _LOGITS if isinstance(layer, TokenEmbedding) else _CALL
            if weights is None or method in vars(layer):  # ALBERT's layers are one
                continue
            if isinstance(layer, TokenEmbedding):
                setattr(layer, method, functools.partial(integer_product, weights=weights))
            else:
                setattr(layer, method, _call_of(layer, weights))
            stack.callback(delattr, layer, method)
        yield


def _call_of(layer: Linear, weights: Codes) -> Callable[..., tf.Tensor]:
    """Returns what a layer's `call` does, with integers."""
    is_gelu = layer.activation == "gelu"
    # No op of oneDNN takes in this GELU, x Phi(x): with u = x / sqrt(2) it is u (erf(u) + 1) /
    # sqrt(2), which passes over the widest activations once less than a formula of x.
    factor = math.sqrt(0.5) if is_gelu else 1.0

    def call(inputs: Any, training: bool | None = None, added: Any = None) -> tf.Tensor:
        is_matrix = len(inputs.shape) == 2
        rows = inputs if is_matrix else tf.reshape(inputs, (-1, inputs.shape[-1]))
        outputs = integer_product(rows, weights, layer.bias, factor)
        if added is not None:
            outputs += tf.convert_to_tensor(added) * factor if is_gelu else added
        if is_gelu:
            outputs *= tf.math.erf(outputs) * factor + factor
        else:
            outputs = activate(outputs, layer.activation, training)
        if is_matrix:
            return outputs
        return tf.reshape(outputs, (*tf.unstack(tf.shape(inputs))[:-1], layer.units))

    return call


def integer_product(
    rows: tf.Tensor, weights: Codes, bias: Any = None, factor: float = 1.0
) -> tf.Tensor:
    """Returns (the product of rows with a quantized matrix + bias) factor, as graph code.

    Args:
        rows: float32 (R, in), none less than `weights.rounding.lowest`.
        weights: the matrix.
        bias: float32 (out,), or None.
        factor: what the sum is multiplied by.

    Returns:
        float32 (R, out).
    """
    smoothing, lowest = weights.rounding.smoothing, weights.rounding.lowest
    if smoothing is not None:
        rows *= 1 / smoothing[:, 0]
    if lowest is None:
        largest = tf.reduce_max(tf.abs(rows), axis=-1, keepdims=True)
        steps, zero = tf.math.divide_no_nan(_MOST_OF_ROWS, largest), _ZERO
        of_zero = -_ZERO * factor / _MOST_OF_ROWS * weights.sums
    else:
        largest = tf.reduce_max(rows, axis=-1, keepdims=True) - lowest
        steps = tf.math.divide_no_nan(_MOST_OF_ROWS, largest)
        zero, of_zero = -lowest * steps, 0 * weights.sums
        of_lowest = lowest * weights.sums
        # One sum of vectors here is one less of matrices.
        bias = of_lowest if bias is None else tf.convert_to_tensor(bias) + of_lowest
    scaled = rows * steps + (zero + 0.5)
    product = _multiplied(scaled, weights, of_zero, factor) * largest
    if bias is None:
        return product
    return product + (bias if factor == 1 else tf.convert_to_tensor(bias) * factor)


def _multiplied(
    scaled: tf.Tensor, weights: Codes, bias: np.ndarray, factor: float
) -> tf.Tensor:
    """Returns (whole parts of `scaled`) codes scales factor / 127 + bias, float32 (R, out)."""
    codes, scales = read_once(weights.codes), read_once(weights.scales)
    rows = tf.bitcast(tf.cast(scaled, tf.uint8), tf.quint8)
    # Bounds, of which the op takes the larger magnitude. The scales must be the same memory at each
    # request, not the outcome of an op: by their address oneDNN finds the kernel made before.
    bound = tf.constant(_ROWS_DIVISOR * _COLUMNS_DIVISOR / _MOST_OF_ROWS * factor)
    inputs = [rows, tf.bitcast(codes, tf.qint8), tf.constant(bias), bound, bound, scales, scales]
    attributes = {
        "Tdevice_inputs": _types(*inputs[:3]),
        "Thost_inputs": _types(*inputs[3:]),
        "Tdevice_outputs": _types(inputs[2]),
        "Thost_outputs": _types(),
        "T1": AttrValue(type=tf.quint8.as_datatype_enum),
        "T2": AttrValue(type=tf.qint8.as_datatype_enum),
        "transpose_b": AttrValue(b=weights.is_table),
        "fused_ops": AttrValue(list=AttrValue.ListValue(s=[b"BiasAdd", b"Dequantize"])),
    }
    graph = tf.compat.v1.get_default_graph()
    made = graph.create_op(INTEGER_OP, inputs, [tf.float32], name="product", attrs=attributes)
    (product,) = made.outputs
    product.set_shape((scaled.shape[0], bias.shape[0]))
    return product


def _types(*tensors: tf.Tensor) -> AttrValue:
    enums = [tensor.dtype.as_datatype_enum for tensor in tensors]
    return AttrValue(list=AttrValue.ListValue(type=enums))
