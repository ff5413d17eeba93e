"""Masks, places and attention as nodes of ONNX, beside NumPy."""

import numpy as np
import onnxruntime

from kbert.layers.attention import CrossAttention
from kbert.serving.portable.onnx_attention import (
    context,
    in_heads,
    places,
    projected,
    score_mask,
)
from kbert.serving.portable.onnx_graph import OnnxGraph


def computed(write, **given):
    """What the nodes of `write(graph)` give for inputs, of which whole numbers are int64."""
    graph = OnnxGraph()
    for name, value in given.items():
        dtype = "int64" if np.asarray(value).dtype.kind == "i" else "float32"
        graph.input(name, [f"{name}_{axis}" for axis in range(np.ndim(value))], dtype)
    graph.output("y", write(graph), ["a"])
    session = onnxruntime.InferenceSession(graph.model("g", {}, "0").SerializeToString())
    return session.run(None, {name: np.asarray(value) for name, value in given.items()})[0]


def test_places_count_in_each_row():
    def counted(graph):
        return graph.op("Cast", places(graph, "ids"), to=1)

    np.testing.assert_array_equal(computed(counted, ids=[[7, 7, 0], [1, 0, 3]]), [[0, 1, 2]] * 2)


def test_masks_of_scores():
    never = -10000.0
    found = computed(lambda graph: score_mask(graph, "real"), real=[[1, 1], [1, 0]])
    np.testing.assert_array_equal(found, [[[[0, 0]]], [[[0, never]]]])
    found = computed(lambda graph: score_mask(graph, None, causal="ids"), ids=[[5, 5]])
    np.testing.assert_array_equal(found, [[[[0, never], [0, 0]]]])
    found = computed(lambda graph: score_mask(graph, "r", "ids"), r=[[0, 1, 1]], ids=[[5, 5, 5]])
    expected = [[never] * 3, [never, 0, never], [never, 0, 0]]
    np.testing.assert_array_equal(found, [[expected]])


def test_attention_of_two_heads():
    random = np.random.default_rng(2)
    layer = CrossAttention(2)
    layer.build((None, None, 4), (None, None, 6))
    for weight in layer.weights:
        weight.assign(random.normal(size=weight.shape))
    memory = random.normal(size=(2, 3, 6)).astype("float32")
    asked = random.normal(size=(2, 5, 4)).astype("float32")
    real = np.array([[1, 1, 1], [1, 0, 1]])

    def write(graph):
        query = in_heads(graph, "asked", layer, 0, 2, 1, 3)
        parts = [projected(graph, "memory", layer.key_value, part, 4) for part in range(2)]
        key = in_heads(graph, parts[0], layer, 0, 2, 3, 1)
        value = in_heads(graph, parts[1], layer, 0, 2, 1, 3)
        return context(graph, layer, query, key, value, score_mask(graph, "real"))

    found = computed(write, asked=asked, memory=memory, real=real)
    kernel, bias = np.asarray(layer.key_value.kernel), np.asarray(layer.key_value.bias)
    keys, values = np.split(memory @ kernel + bias, 2, axis=-1)
    for row in range(2):
        for head in range(2):
            own = slice(2 * head, 2 * head + 2)
            scores = asked[row, :, own] @ keys[row, :, own].T / np.sqrt(2)
            weights = np.exp(scores - scores.max(-1, keepdims=True)) * real[row]
            weights /= weights.sum(-1, keepdims=True)
            expected = weights @ values[row, :, own]
            np.testing.assert_allclose(found[row, :, own], expected, atol=1e-5)
