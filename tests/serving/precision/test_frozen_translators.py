"""Translators whose search multiplies by constants."""

from collections import Counter
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.export.export import export
from kbert.serving.format.signatures import read_meta_graph
from kbert.serving.format.version_folders import read_metadata
from kbert.serving.loading.exported import load_export
from kbert.serving.precision.rounding import has_integer_products, integer_layers
from kbert.serving.precision.substitutes import WeightSubstitutes
from kbert.tasks.translation.model import Translator
from tests.serving.precision.test_conversion_decoders import KINDS, PIECES
from tests.serving.precision.test_conversion_decoders import translator as random_translator
from tests.small_translator import LINES, small_subwords

TEXTS = [*LINES[:6], ""]


def translator(kind: str) -> Translator:
    """One with random weights, no bias of which is 0."""
    model = random_translator(kind, small_subwords(size=PIECES))
    model.beam_size, model.nbest, model.length_extra = 3, 2, 5
    for variable in model.transformer.weights:
        if len(variable.shape) == 1 and variable.dtype == "float32":
            variable.assign_add(keras.random.normal(variable.shape, stddev=0.1))
    return model


def traced(model: Translator, precision: str | None, frozen: bool) -> Any:
    """The graph of `translate` with the substitutes of an export."""
    substitutes = WeightSubstitutes([model])
    substitutes.store_small(precision)
    if frozen:
        substitutes.freeze()
    function, specs = model.signatures()["serving_default"]
    one = tf.function(substitutes.function(function), specs, autograph=False)
    return one.get_concrete_function()


def constants(definition: Any, dtype: tf.DType, least: int) -> Counter[int]:
    """How often constants of so many numbers, and at least `least`, are in a graph."""
    nodes = [n for function in definition.library.function for n in function.node_def]
    arrays = [n.attr["value"].tensor for n in nodes if n.op == "Const"]
    sizes = [
        int(np.prod([d.size for d in one.tensor_shape.dim]))
        for one in arrays
        if one.dtype == dtype.as_datatype_enum
    ]
    return Counter(size for size in sizes if size >= least)


SLOW = ("fused", "convs2s")


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in SLOW)) for k in KINDS]
)
def test_constants_translate_as_variables_do(kind: str):
    model = translator(kind)
    text = tf.constant(TEXTS)
    exact, graph = traced(model, None, False)(text), traced(model, None, True)
    found = graph(text)
    np.testing.assert_array_equal(found["nbest_translation"], exact["nbest_translation"])
    np.testing.assert_allclose(found["nbest_score"], exact["nbest_score"], rtol=1e-5, atol=1e-6)
    # No loop reads a variable: such a loop does one thing at a time.
    inside = [n for f in graph.graph.as_graph_def().library.function for n in f.node_def]
    assert not {"ReadVariableOp", "ResourceGather"} & {node.op for node in inside}
    # The output's matrix is one constant, of the steps; elsewhere it is a variable.
    sizes = constants(graph.graph.as_graph_def(), tf.float32, PIECES * 64)
    assert sizes[PIECES * 64] == 1
    # The model is as it was.
    assert all("logits" not in vars(layer) for layer in model.transformer._flatten_layers())


def test_each_matrix_of_a_step_is_one_constant():
    graph = traced(translator("transformer"), None, True).graph
    # By hand, of a decoder's block of width 64 and 128: query, key and value of its own attention,
    # its output, query and output of the attention to the source, both of the feed-forward; and the
    # embeddings. Keys and values of the source are no part of a step, nor is the encoder.
    step = Counter({64 * 192: 1, 64 * 64: 3, 64 * 128: 2, 64 * PIECES: 1})
    assert constants(graph.as_graph_def(), tf.float32, 64 * 64) == step


@pytest.mark.slow
def test_an_export_answers_as_python_does(tmp_path: Path):
    model = translator("transformer")
    model.learn_shortlist(LINES, LINES)
    path = export(model, tmp_path, "small", frozen=True)
    metadata = read_metadata(path)
    assert metadata["frozen"] and metadata["weights"]["parameters"] == model.count_params()
    # The alignment's search reads variables.
    sizes = constants(read_meta_graph(path).graph_def, tf.float32, 64 * 192)
    assert sizes[64 * 192] == 1
    found, expected = load_export(path).predict(TEXTS), model.translation_columns(TEXTS)
    np.testing.assert_array_equal(found["translation"], expected["translation"])
    np.testing.assert_allclose(found["score"], expected["score"], rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(not has_integer_products(), reason="this TensorFlow has no product of int8")
def test_integers_of_a_step_are_constants():
    model = translator("transformer")
    text = tf.constant(TEXTS)
    exact, graph = traced(model, "int8", False)(text), traced(model, "int8", True)
    np.testing.assert_allclose(graph(text)["score"], exact["score"], rtol=1e-5, atol=1e-6)
    count = constants(graph.graph.as_graph_def(), tf.int8, 64 * 64).total()
    # All layers but the encoder's four, and keys and values of the source.
    assert count == len(integer_layers(model)) - 5
