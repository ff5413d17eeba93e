"""Int8 of models that write: what of them multiplies integers, and what that does to answers."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from kbert.export_check.check import check
from kbert.models.bert import Bert
from kbert.models.captioning.image_transformer import ImageTransformer
from kbert.models.encoder_decoders.bahdanau import Bahdanau
from kbert.models.encoder_decoders.bert_fused_transformer import BertFusedTransformer
from kbert.models.encoder_decoders.convs2s import ConvS2S
from kbert.models.encoder_decoders.rnn import RnnEncoderDecoder
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.serving.export.export import export
from kbert.serving.format.version_folders import read_metadata
from kbert.serving.loading.exported import load_export
from kbert.serving.precision.conversion import in_precision
from kbert.serving.precision.rounding import (
    INTEGER_OP,
    Rounding,
    has_integer_products,
    integer_layers,
    integer_matrices,
)
from kbert.serving.precision.substitutes import WeightSubstitutes
from kbert.tasks.translation.loop_weights import loop_weights
from kbert.tasks.translation.model import Translator
from tests.small_captioner import small_captioner
from tests.small_pipelines import TOKENIZER
from tests.small_translator import LINES, small_subwords

pytestmark = pytest.mark.skipif(
    not has_integer_products(), reason="this TensorFlow has no product of int8, as it has on x86"
)
PIECES, WIDTH = 72, 64
KINDS: dict[str, Any] = {
    "transformer": lambda: Transformer(PIECES, WIDTH, 1, 1, 2, 128, 40, activation="relu"),
    "untied": lambda: Transformer(PIECES, WIDTH, 1, 1, 2, 128, 40, tied="none"),
    "fused": lambda: BertFusedTransformer(
        *(PIECES, WIDTH, 1, 1, 2, 128, 40),
        bert=Bert(len(TOKENIZER.vocabulary), WIDTH, 1, 2, 128, max_sequence_length=40),
    ),
    "rnn": lambda: RnnEncoderDecoder(PIECES, WIDTH, embedding_dim=WIDTH),
    "bahdanau": lambda: Bahdanau(PIECES, WIDTH, embedding_dim=WIDTH),
    "convs2s": lambda: ConvS2S(PIECES, WIDTH, 1, 1, embedding_dim=WIDTH),
}


@pytest.fixture(scope="module")
def subwords() -> Any:
    return small_subwords(size=PIECES)


def translator(kind: str, subwords: Any) -> Translator:
    """One with random weights of a width that pays."""
    keras.utils.set_random_seed(5)
    tokenizer = TOKENIZER if kind == "fused" else None
    limits = {"beam_size": 1, "length_ratio": 0.0, "length_extra": 4}
    return Translator(KINDS[kind](), subwords, subwords, tokenizer, **limits)


def searched(model: Translator, substitutes: WeightSubstitutes) -> Any:
    """The best hypotheses of two sentences by a graph, and how many products of integers it has."""

    def search(text: Any) -> Any:
        inputs, lengths, _ = model.source_inputs(text)
        beside = {} if model.bert_tokenizer is None else model.bert_inputs(text)[0]
        with loop_weights(model.transformer):
            return model.search({**inputs, **beside}, lengths)

    function, spec = substitutes.function(search), tf.TensorSpec((None,), tf.string)
    traced = tf.function(function, [spec], autograph=False)
    definition = traced.get_concrete_function().graph.as_graph_def()
    inside = [n for f in definition.library.function for n in f.node_def]
    # A loop that reads variables does one thing at a time.
    assert not {"ReadVariableOp", "ResourceGather"} & {node.op for node in inside}
    nodes = [*definition.node, *inside]
    found = traced(tf.constant(["the old man reads a book", "ein Kind spielt"]))
    return found, sum(node.op == INTEGER_OP for node in nodes)


@pytest.mark.parametrize("kind", ["transformer", pytest.param("fused", marks=pytest.mark.slow)])
def test_a_search_multiplies_integers(kind: str, subwords: Any):
    model = in_precision(translator(kind, subwords), "int8")
    substitutes = WeightSubstitutes([model])
    substitutes.store_small("int8")
    assert substitutes.multiplies_integers
    exact, none = searched(model, WeightSubstitutes([model]))
    found, count = searched(model, substitutes)
    # At least each layer once: the steps of the search are traced twice.
    assert none == 0 and count >= len(integer_layers(model))
    assert found.token_ids.shape[1] == 1
    # The weights are those of the copy; the rows of activations are rounded besides.
    np.testing.assert_allclose(found.log_probabilities, exact.log_probabilities, rtol=0.02)
    assert np.any(found.log_probabilities != exact.log_probabilities)


@pytest.mark.parametrize("kind", KINDS)
def test_layers_of_encoder_decoders(kind: str, subwords: Any):
    model = translator(kind, subwords)
    table = model.transformer.target_embedding
    layers = integer_layers(model)
    assert (table in layers) is (kind != "untied")
    dense = [layer.path.split("/", 1)[1] for layer in layers if layer is not table]
    if kind in ("transformer", "untied", "fused"):
        block = ["cross_attention/key_value", "cross_attention/output", "cross_attention/query"]
        block += ["feed_forward/intermediate", "feed_forward/output"]
        block += ["self_attention/output", "self_attention/qkv"]
        assert {f"decoder_block_0/{name}" for name in block} <= set(dense)
        assert "encoder_block_0/feed_forward/output" in dense
    else:
        of_states = {"rnn": ["context", "initial_0"], "bahdanau": ["initial"], "convs2s": []}
        assert dense == of_states[kind]
    roundings = integer_matrices(in_precision(model, "int8"))
    after_relu = [one for one in roundings.values() if one == Rounding(lowest=0.0)]
    assert len(after_relu) == {"transformer": 2, "untied": 2, "fused": 2}.get(kind, 0)


def test_a_captioner():
    model = small_captioner("image")
    assert integer_layers(model) == []  # all are narrow
    model.decoder = ImageTransformer(PIECES, 8, WIDTH, 128, 0, 1, 2, WIDTH)
    assert model.decoder.target_embedding in integer_layers(model)


@pytest.mark.slow
def test_an_export_of_a_translator(subwords: Any, tmp_path: Path, programs: Path):
    model = translator("transformer", subwords)
    path = export(model, tmp_path, "small", precision="int8", max_batch_size=2)
    metadata = read_metadata(path)
    assert metadata["integer_products"] is True
    assert metadata["weights"]["bytes"] < 0.35 * 4 * model.count_params()
    assert check(path, folder=programs).problems == []
    texts = [*LINES[:6], ""]
    found = load_export(path).predict(texts)
    expected = model.translation_columns(texts)
    np.testing.assert_allclose(found["score"], expected["score"], rtol=0.05, atol=1e-3)
    alone = load_export(path).predict(texts[:1])
    np.testing.assert_allclose(alone["score"], found["score"][:1], rtol=1e-3)
