"""Nodes of ONNX that stand for Keras layers."""

import sys

import numpy as np
import onnxruntime
import pytest

from kbert.layers.linear import _ACTIVATIONS as KERAS_ACTIVATIONS
from kbert.layers.linear import Linear, activate
from kbert.layers.residual import LayerNorm
from kbert.serving.portable.onnx_graph import _ACTIVATIONS, OPSET, OnnxGraph

X = np.linspace(-4.0, 4.0, 12).reshape(2, 6).astype("float32")


def computed(write):
    """What the nodes of `write(graph, x)` make of X, the rows 1 and 0 of which are looked up."""
    graph = OnnxGraph()
    rows = graph.input("rows", ["n"])
    x = graph.op("Gather", graph.number(X), rows)
    graph.output("y", write(graph, x), ["n", "m"])
    session = onnxruntime.InferenceSession(graph.model("g", {}, "0").SerializeToString())
    return session.run(None, {"rows": np.array([1, 0])})[0][::-1]


@pytest.mark.parametrize("name", sorted(KERAS_ACTIVATIONS))
def test_each_activation_of_dense_layers(name):
    assert name in _ACTIVATIONS
    found = computed(lambda graph, x: _ACTIVATIONS[name](graph, x))
    np.testing.assert_allclose(found, activate(X, name), atol=2e-6)


def test_a_dense_layer_and_a_layer_norm():
    dense, norm = Linear(4, "tanh"), LayerNorm(1e-3)
    for layer in (dense, norm):
        layer.build((None, 6))
        for number, weight in enumerate(layer.weights):
            weight.assign(np.random.default_rng(number).normal(size=weight.shape))
    np.testing.assert_allclose(computed(lambda g, x: g.linear(x, dense)), dense(X), atol=1e-6)
    np.testing.assert_allclose(computed(lambda g, x: g.layer_norm(x, norm)), norm(X), atol=1e-5)


def test_a_weight_is_stored_once_and_its_parts_each():
    layer = Linear(4)
    layer.build((None, 6))
    graph = OnnxGraph()
    assert graph.weight(layer.kernel) == graph.weight(layer.kernel)
    assert graph.weight(layer.kernel, lambda a: a[:2]) != graph.weight(layer.kernel)


def test_the_model_says_who_wrote_it():
    graph = OnnxGraph()
    graph.output("y", graph.op("Cast", graph.input("x", ["any"]), to=1), ["any"])
    model = graph.model("g", {"class": "Classifier"}, "1.2")
    assert (model.producer_name, model.producer_version) == ("kbert", "1.2")
    assert [(one.domain, one.version) for one in model.opset_import] == [("", OPSET)]
    assert [(one.key, one.value) for one in model.metadata_props] == [("class", "Classifier")]


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r'pip install "\.\[onnx\]"'):
        OnnxGraph()
