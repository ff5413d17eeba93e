"""Products of integers: by hand, and against NumPy's whole numbers."""

import os
import subprocess
import sys
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.layers.linear import Linear
from kbert.models.bert import Bert
from kbert.pipelines.inference import CapturedWeights
from kbert.serving.export.integer_products import (
    MOST_OF_WEIGHTS,
    has_integer_products,
    integer_layers,
    integer_product,
    integer_products,
)
from kbert.serving.export.precision import Int8Weight, int8_codes
from kbert.tasks.classification.model import Classifier
from tests.small_pipelines import TOKENIZER, VOCABULARY

pytestmark = pytest.mark.skipif(
    not has_integer_products(), reason="this TensorFlow has no product of int8, as it has on x86"
)


def product(rows: Any, codes: Any, scales: Any, factor: float = 1.0) -> np.ndarray:
    """The graph's product."""

    def compute(x: Any) -> Any:
        return integer_product(x, tf.constant(codes, tf.int8), tf.constant(scales), factor)

    traced = tf.function(compute, [tf.TensorSpec((None, len(codes)))], autograph=False)
    return traced(np.asarray(rows, "float32")).numpy()


def by_numpy(rows: Any, codes: Any, scales: Any) -> np.ndarray:
    """The same with NumPy's 64-bit integers and floats."""
    step = np.abs(rows).max(-1, keepdims=True).astype("float64") / 127
    step[step == 0] = 1
    sums = np.rint(rows / step).astype("int64") @ codes.astype("int64")
    return sums * scales * step


def test_by_hand():
    codes, scales = np.array([[1, 2], [3, -4]], "int8"), np.array([[0.5, 0.25]], "float32")
    # 127 - 64 * 3 = -65 and 127 * 2 + 64 * 4 = 510; then twice as large, as the row is; then zeros.
    found = product([[127.0, -64.0], [254.0, -128.0], [0.0, 0.0]], codes, scales)
    np.testing.assert_allclose(found, [[-32.5, 127.5], [-65.0, 255.0], [0.0, 0.0]], rtol=1e-6)
    np.testing.assert_allclose(
        product([[127.0, -64.0]], codes, scales, 2.0), [[-65.0, 255.0]], rtol=1e-6
    )
    assert product(np.zeros((0, 2)), codes, scales).shape == (0, 2)


def test_against_whole_numbers():
    random = np.random.default_rng(1)
    rows = random.normal(size=(9, 100)).astype("float32") * 10.0 ** np.arange(-4, 5)[:, None]
    rows = rows.astype("float32")
    codes, scales = int8_codes(random.normal(size=(100, 70)), "kernel", MOST_OF_WEIGHTS)
    assert np.abs(codes).max() == MOST_OF_WEIGHTS
    found, expected = product(rows, codes, scales), by_numpy(rows, codes, scales)
    largest = np.abs(expected).max(-1, keepdims=True)
    np.testing.assert_allclose(found / largest, expected / largest, atol=1e-5)
    # A row's answer is the same, whatever else there is.
    np.testing.assert_array_equal(found[3:4], product(rows[3:4], codes, scales))


def test_the_largest_sums():
    codes = np.full((512, 64), MOST_OF_WEIGHTS, "int8")
    found = product(np.ones((3, 512)), codes, np.ones((1, 64), "float32"))
    np.testing.assert_allclose(found, 512 * MOST_OF_WEIGHTS, rtol=1e-6)
    signs = np.where(np.arange(512) % 2, -1, 1)[:, None]
    found = product(signs.T * np.ones((3, 1)), signs * codes, np.ones((1, 64), "float32"))
    np.testing.assert_allclose(found, 512 * MOST_OF_WEIGHTS, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("processor", ["AVX2", "AVX512_CORE"])
def test_processors_without_instructions_for_bytes(processor: str):
    these = [__file__, "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": processor}
    command = [sys.executable, "-m", "pytest", *these]
    subprocess.run(command, env=environment, check=True, capture_output=True)


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    keras.utils.set_random_seed(3)
    encoder = Bert(len(VOCABULARY), 64, 1, 2, 128, 32, name="encoder")
    return Classifier(encoder, TOKENIZER, ["no", "yes"], 24)


def test_the_layers_of_encoders(classifier: Classifier):
    names = [layer.path.split("/", 1)[1] for layer in integer_layers(classifier)]
    block = [f"attention/{part}" for part in ("output", "qkv")]
    block += [f"feed_forward/{part}" for part in ("intermediate", "output")]
    assert sorted(names) == sorted([f"encoder_block_0/{name}" for name in block] + ["pooler"])
    assert integer_layers(keras.Sequential()) == integer_layers(object()) == []
    narrow = Bert(len(VOCABULARY), 32, 1, 2, 128, 32)
    assert integer_layers(Classifier(narrow, TOKENIZER, ["no", "yes"], 24)) == []


@pytest.mark.parametrize("activation", [None, "gelu", "relu"])
def test_a_layer_with_bias_and_activation(activation: str | None):
    layer = Linear(64, activation)
    layer.build((None, None, 80))
    random = np.random.default_rng(2)
    layer.bias.assign(random.normal(size=64))
    x, more = random.normal(size=(2, 3, 80)).astype("float32"), random.normal(size=(6, 64))
    weights = Int8Weight(layer.kernel, MOST_OF_WEIGHTS)
    rows = by_numpy(x.reshape(6, 80), *int8_codes(np.asarray(layer.kernel), "kernel", 63))
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
    weights = Int8Weight(layer.kernel, MOST_OF_WEIGHTS)

    def twice(x: Any) -> Any:
        with CapturedWeights(lambda variable: None), integer_products([layer], lambda _: weights):
            return tf.while_loop(lambda i, x: i < 2, lambda i, x: (i + 1, layer(x)), (0, x))[1]

    traced = tf.function(twice, [tf.TensorSpec((3, 64))], autograph=False).get_concrete_function()
    graphs = traced.graph.as_graph_def().library.function
    bodies = [[n.op for n in f.node_def] for f in graphs if "body" in f.signature.name]
    # The bias, a variable of Keras, stays one here: an export captures it as well.
    (nodes,) = [nodes for nodes in bodies if "_QuantizedMatMul" in nodes]
    assert nodes.count("ReadVariableOp") == 1
