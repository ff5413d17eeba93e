"""Exports whose encoder's weights are constants of the graph."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.models.bert import Bert
from kbert.serving.export.export import export
from kbert.serving.format.signatures import read_meta_graph
from kbert.serving.format.version_folders import read_metadata
from kbert.serving.loading.exported import load_export
from kbert.serving.precision.frozen import FrozenWeights
from kbert.serving.precision.rounding import integer_layers
from kbert.serving.precision.substitutes import WeightSubstitutes
from kbert.tasks.classification.model import Classifier
from tests.serving.tiny_models import Meter
from tests.small_pipelines import TEXTS, TOKENIZER, VOCABULARY, computed

FLOAT = tf.float32.as_datatype_enum


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    keras.utils.set_random_seed(3)
    encoder = Bert(len(VOCABULARY), 64, 1, 2, 128, 32, initializer_range=0.1, name="encoder")
    return Classifier(encoder, TOKENIZER, ["no", "yes"], 24)


def test_constants_are_stored_once_and_answer_the_same(classifier: Classifier, tmp_path: Path):
    path = export(classifier, tmp_path, max_batch_size=0, frozen=True)
    found = load_export(path).predict(TEXTS)["scores"]
    np.testing.assert_allclose(found, computed(classifier, TEXTS), atol=1e-6)
    written = read_metadata(path)
    assert written["frozen"]
    tables = ("token_embedding/embeddings", "segment_embedding/embeddings")
    sizes = {v.path: int(np.prod(v.shape)) for v in classifier.encoder.weights}
    kept = sum(size for name, size in sizes.items() if name.endswith(tables))
    head = classifier.count_params() - classifier.encoder.count_params()
    assert written["weights"]["parameters"] == kept + head
    # Two signatures, and the constants only once.
    graph = read_meta_graph(path).graph_def
    nodes = [node for function in graph.library.function for node in function.node_def]
    arrays = [n.attr["value"].tensor for n in nodes if n.op == "Const"]
    floats = [np.prod([d.size for d in a.tensor_shape.dim]) for a in arrays if a.dtype == FLOAT]
    large = sorted(int(size) for size in floats if size >= 2048)
    assert large == sorted(n for k, n in sizes.items() if n >= 2048 and not k.endswith(tables))
    # The encoder is as it was.
    assert "call" not in vars(classifier.encoder)


def test_integers_that_are_multiplied_are_constants_too(classifier: Classifier):
    function, specs = classifier.signatures()["tokens"]
    inputs = [tf.constant([[2, 5, 6, 3]]), tf.constant([[0, 0, 0, 0]]), tf.constant([4])]
    found, stored = [], []
    for frozen in (False, True):
        substitutes = WeightSubstitutes([classifier])
        substitutes.store_small("int8")
        if frozen:
            substitutes.freeze()
        traced = tf.function(substitutes.function(function), specs, autograph=False)
        found.append(traced(*inputs)["scores"])
        variables = traced.get_concrete_function().variables
        stored.append(sum(v.dtype == tf.int8 for v in variables))
    np.testing.assert_allclose(*found, atol=1e-6)
    assert stored[0] - stored[1] == len(integer_layers(classifier))
    assert stored[1] > 0  # tables remain


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("precision", [None, "int8"])
def test_chunks_of_a_batch_run_side_by_side(
    classifier: Classifier, tmp_path: Path, precision: str | None, frozen: bool
):
    # A loop that reads variables would run one chunk at a time.
    path = export(classifier, tmp_path, max_batch_size=0, precision=precision, frozen=frozen)
    library = read_meta_graph(path).graph_def.library
    functions = {one.signature.name: one for one in library.function}

    def operations(name: str) -> set[str]:
        found: set[str] = set()
        for node in functions[name].node_def:
            found.add(node.op)
            for value in node.attr.values():
                found |= operations(value.func.name) if value.func.name else set()
        return found

    nodes = [node for function in functions.values() for node in function.node_def]
    loops = [n for n in nodes if "While" in n.op and n.attr["parallel_iterations"].i > 1]
    assert loops
    for loop in loops:
        assert loop.op == "StatelessWhile"
        assert "ReadVariableOp" not in operations(loop.attr["body"].func.name)


def test_weights_that_are_kept_stay_variables(classifier: Classifier):
    kernel = classifier.encoder.pooler.kernel
    frozen = FrozenWeights([classifier], lambda variable: variable is kernel)
    graph = tf.Graph()
    assert frozen.constant(kernel, graph) is None
    np.testing.assert_array_equal(
        frozen.constant(classifier.encoder.pooler.bias, graph), classifier.encoder.pooler.bias
    )
    table = classifier.encoder.embeddings.token_embedding.embeddings
    assert frozen.constant(table, graph) is None


@pytest.mark.parametrize("model", [Meter(), keras.Sequential()], ids=["no Keras", "no encoder"])
def test_a_model_without_an_encoder_cannot_be_frozen(model: Any):
    with pytest.raises(ValueError, match="model without an encoder or an encoder-decoder of"):
        FrozenWeights([model], lambda variable: False)
