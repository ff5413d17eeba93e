"""Products of integers: by hand, and against NumPy's whole numbers."""

import functools
import os
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.embeddings import TokenEmbedding
from kbert.layers.linear import Linear
from kbert.pipelines.inference import CapturedWeights
from kbert.serving.precision.integer_products import integer_product, integer_products
from kbert.serving.precision.rounding import Rounding, has_integer_products
from kbert.serving.precision.small_weights import Int8Weight, int8_codes

pytestmark = pytest.mark.skipif(
    not has_integer_products(), reason="this TensorFlow has no product of int8, as it has on x86"
)


class Matrix:
    """Codes of a matrix."""

    def __init__(self, codes: Any, scales: Any, rounding: Rounding = Rounding()) -> None:
        self.codes, self.scales = tf.constant(codes, tf.int8), tf.constant(scales)
        self.sums = (codes.sum(0) * scales[0]).astype("float32")
        self.rounding, self.is_table = rounding, False


def product(rows: Any, matrix: Matrix, factor: float = 1.0) -> np.ndarray:
    """The graph's product."""
    spec = tf.TensorSpec((None, matrix.codes.shape[0]))
    multiplied = functools.partial(integer_product, weights=matrix, factor=factor)
    traced = tf.function(multiplied, [spec], autograph=False)
    return traced(np.asarray(rows, "float32")).numpy()


def by_numpy(rows: Any, codes: Any, scales: Any, how: Rounding = Rounding()) -> np.ndarray:
    """The same with NumPy's 64-bit integers and floats."""
    rows = np.asarray(rows, "float32")
    if how.smoothing is not None:
        rows = rows / how.smoothing[:, 0]
    least = np.float32(0 if how.lowest is None else how.lowest)
    largest = np.abs(rows - least).max(-1, keepdims=True)
    steps = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=largest > 0)
    whole = np.floor((rows - least) * steps + np.float32(0.5)).astype("int64")
    step = largest.astype("float64") / 127
    sums = whole @ codes.astype("int64")
    return (sums * step + np.float64(least) * codes.sum(0, dtype="int64")) * scales


def test_by_hand():
    matrix = Matrix(np.array([[1, 2], [3, -4]]), np.array([[0.5, 0.25]], "float32"))
    # 127 - 64 * 3 = -65 and 127 * 2 + 64 * 4 = 510; then twice as large, as the row is; then zeros.
    found = product([[127.0, -64.0], [254.0, -128.0], [0.0, 0.0]], matrix)
    np.testing.assert_allclose(found, [[-32.5, 127.5], [-65.0, 255.0], [0.0, 0.0]], rtol=1e-5)
    found = product([[127.0, -64.0]], matrix, 2.0)
    np.testing.assert_allclose(found, [[-65.0, 255.0]], rtol=1e-5)
    assert product(np.zeros((0, 2)), matrix).shape == (0, 2)


def test_by_hand_where_no_number_is_less():
    how = Rounding(lowest=-27.0)
    matrix = Matrix(np.array([[1, 2], [3, -4]]), np.array([[0.5, 0.25]], "float32"), how)
    # Steps of 1 from -27: 100 - 3 * 27 = 19 and 200 + 4 * 27 = 308; then all as low as can be.
    found = product([[100.0, -27.0], [-27.0, -27.0]], matrix)
    np.testing.assert_allclose(found, [[9.5, 77.0], [-54.0, 13.5]], rtol=1e-5)
    found = product([[100.0, -27.0]], matrix, 2.0)
    np.testing.assert_allclose(found, [[19.0, 154.0]], rtol=1e-5)


def test_by_hand_with_smoothed_columns():
    how = Rounding(np.array([[4.0], [0.5]], "float32"))
    matrix = Matrix(np.array([[1, 2], [3, -4]]), np.array([[0.5, 0.25]], "float32"), how)
    # Divided, 127 and -64 as above.
    found = product([[508.0, -32.0]], matrix)
    np.testing.assert_allclose(found, [[-32.5, 127.5]], rtol=1e-5)


@pytest.mark.parametrize("lowest", [None, -0.17])
def test_against_whole_numbers(lowest: float | None):
    random = np.random.default_rng(1)
    rows = random.normal(size=(9, 100)).astype("float32") * 10.0 ** np.arange(-4, 5)[:, None]
    rows = np.maximum(rows, -np.inf if lowest is None else lowest).astype("float32")
    smoothing = np.exp2(random.integers(-3, 4, size=(100, 1))).astype("float32")
    how = Rounding(lowest=lowest) if lowest is not None else Rounding(smoothing)
    codes, scales = int8_codes(random.normal(size=(100, 70)), "kernel", how)
    assert np.abs(codes).max() == how.most
    matrix = Matrix(codes, scales, how)
    found, expected = product(rows, matrix), by_numpy(rows, codes, scales, how)
    # What is added for `lowest` may be larger than their sum.
    largest = np.abs([expected, 0 * expected + (lowest or 0) * matrix.sums]).max((0, -1))[:, None]
    np.testing.assert_allclose(found / largest, expected / largest, atol=1e-5)
    # A row's answer is the same, whatever else there is.
    np.testing.assert_array_equal(found[3:4], product(rows[3:4], matrix))


@pytest.mark.parametrize("how", [Rounding(), Rounding(lowest=0.0)])
def test_the_largest_sums(how: Rounding):
    codes, scales = np.full((512, 64), how.most, "int8"), np.ones((1, 64), "float32")
    found = product(np.ones((3, 512)), Matrix(codes.astype("int64"), scales, how))
    np.testing.assert_allclose(found, 512 * how.most, rtol=1e-5)
    signs = np.where(np.arange(512) % 2, -1, 1)[:, None]
    rows = np.ones((3, 512)) if how.lowest is not None else signs.T * np.ones((3, 1))
    signed = signs * codes.astype("int64")
    found = product(rows, Matrix(signed, scales, how))
    expected = np.full((3, 64), 0.0 if how.lowest is not None else 512.0 * how.most)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=0.1)


def test_logits_by_a_table_of_embeddings():
    random = np.random.default_rng(3)
    embedding = TokenEmbedding(70, 100)
    embedding.build()
    states = random.normal(size=(5, 100)).astype("float32")
    table = np.asarray(embedding.embeddings)
    weights = Int8Weight(embedding.embeddings, Rounding())
    with integer_products([embedding], lambda matrix: weights):
        found = tf.function(embedding.logits, autograph=False)(states)
    codes, scales = int8_codes(table, "embeddings", Rounding())
    np.testing.assert_allclose(found, by_numpy(states, codes.T, scales.T), atol=1e-5)
    # Two roundings of 126 and 255 steps, and outside it is itself again.
    exact = states @ table.T
    assert 0 < np.abs(found - exact).max() < 0.03 * np.abs(exact).max()
    np.testing.assert_allclose(embedding.logits(states), exact, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["AVX2", "AVX512_CORE"])
def test_processors_without_instructions_for_bytes(processor: str):
    these = [__file__, "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": processor}
    command = [sys.executable, "-m", "pytest", *these]
    subprocess.run(command, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("activation", [None, "gelu", "relu"])
def test_a_layer_with_bias_and_activation(activation: str | None):
    layer = Linear(64, activation)
    layer.build((None, None, 80))
    random = np.random.default_rng(2)
    layer.bias.assign(random.normal(size=64))
    x, more = random.normal(size=(2, 3, 80)).astype("float32"), random.normal(size=(6, 64))
    weights = Int8Weight(layer.kernel, Rounding())
    rows = by_numpy(x.reshape(6, 80), *int8_codes(np.asarray(layer.kernel), "kernel", Rounding()))
    for added in (None, more.astype("float32")):
        with integer_products([layer, layer], lambda kernel: weights):
            # Not the graph of another call: the layer looks as before.
            found = tf.function(lambda x, added=added: layer(x, added=added))(x)
        expected = rows + np.asarray(layer.bias) + (0 if added is None else more)
        if activation == "gelu":
            expected = keras.ops.gelu(expected, approximate=False)
        elif activation == "relu":
            expected = np.maximum(expected, 0)
        np.testing.assert_allclose(found, np.reshape(expected, (2, 3, 64)), atol=1e-5)
    assert "call" not in vars(layer)
    with integer_products([layer], lambda kernel: None):
        assert "call" not in vars(layer)


def test_weights_are_read_outside_of_loops():
    layer = Linear(64)
    layer.build((None, 64))
    weights = Int8Weight(layer.kernel, Rounding())

    def twice(x: Any) -> Any:
        with CapturedWeights(lambda variable: None), integer_products([layer], lambda _: weights):
            return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, layer(x)), (0, x))[1]

    traced = tf.function(twice, [tf.TensorSpec((3, 64))], autograph=False).get_concrete_function()
    graphs = traced.graph.as_graph_def().library.function
    bodies = [[n.op for n in f.node_def] for f in graphs if "body" in f.signature.name]
    # The bias, a variable of Keras, stays one here: an export captures it as well.
    (nodes,) = [nodes for nodes in bodies if "_QuantizedMatMul" in nodes]
    assert nodes.count("ReadVariableOp") == 1
