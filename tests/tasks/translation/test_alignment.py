"""What a translation attends to: the graph against the NumPy reference, padding, and the export."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.models.weights import encoder_arrays
from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.tasks.translation.model import Translator
from tests import translation_reference as reference
from tests.small_translator import (
    graph_of,
    shared_translator,
    small_subwords,
    small_translator,
)

LONG = "two women drink coffee near the river"
TEXTS = ["the old man", "", LONG, "a ball"]


def aligned(model, texts):
    found = graph_of(model, "align")(tf.constant(texts, tf.string))
    return {key: value.numpy() for key, value in found.items()}


def aligned_once(model, texts):
    """Without a graph, which takes longer to trace than a few words to align."""
    return {key: value.numpy() for key, value in model.align(tf.constant(texts)).items()}


def ids_of(tokens, count, subwords):
    return [subwords.id_of(token.decode()) for token in tokens[:count]]


@pytest.mark.parametrize(
    "fused, layer", [(False, -1), pytest.param(True, None, marks=pytest.mark.slow)]
)
def test_it_is_the_mean_of_the_heads(fused, layer):
    """Of one layer, or of both: the translation is read once more by the NumPy reference."""
    subwords = small_subwords()
    model = shared_translator(fused, 2, alignment_layer=layer)
    text = tf.constant([LONG])
    found = aligned(model, [LONG])
    source = ids_of(found["source_tokens"][0], found["source_lengths"][0], subwords)
    target = ids_of(found["target_tokens"][0], found["target_lengths"][0], subwords)
    assert source[:-1] == subwords.tokenize(text)[0].numpy().tolist()
    assert source[-1] == target[-1] == subwords.end_id
    said = subwords.detokenize(tf.constant([target]))[0]
    assert said == found["translation"][0]

    architecture = reference.Architecture(2, 1, 2, epsilon=1e-5)
    arrays, bert = encoder_arrays(model.transformer), None
    if fused:
        inputs, _ = model.bert_inputs(text)
        states = np.asarray(model.transformer.bert_states(inputs))
        bert = reference.BertMemory(states, inputs["bert_padding_mask"].numpy())
    memory = reference.encode(arrays, [source], architecture, bert=bert)
    known = [[subwords.start_id, *target[:-1]]]
    layers = reference.memory_scores(arrays, known, memory, architecture, bert=bert)
    wanted = np.mean(layers if layer is None else [layers[layer]], axis=(0, 2))
    np.testing.assert_allclose(found["alignment"], wanted, atol=1e-5)
    # Not a mean of everything, which any layer would give.
    assert wanted.max() > 1.5 / len(source)


@pytest.mark.parametrize(
    "fused, beam", [(False, 2), pytest.param(True, 1, marks=pytest.mark.slow)]
)
def test_a_row_does_not_depend_on_the_others(fused, beam, monkeypatch):
    model = shared_translator(fused, beam_size=beam)
    together = aligned(model, TEXTS)
    monkeypatch.setattr("kbert.tasks.translation.batching._CHUNK_CELLS", 30)
    for found in (together, aligned_once(model, TEXTS)):  # in one chunk, and in several
        for row, text in enumerate(TEXTS):
            alone = aligned(model, [text])
            source, target = alone["source_lengths"][0], alone["target_lengths"][0]
            assert alone["alignment"].shape == (1, target, source)
            for key in ("translation", "truncated", "source_lengths", "target_lengths"):
                assert found[key][row] == alone[key][0], key
            for key in ("source_tokens", "target_tokens"):
                count = alone[key].shape[1]
                np.testing.assert_array_equal(found[key][row][:count], alone[key][0])
                assert set(found[key][row][count:]) <= {b""}
            np.testing.assert_allclose(found["score"][row], alone["score"][0], atol=1e-5)
            weights = found["alignment"][row]
            np.testing.assert_allclose(weights[:target, :source], alone["alignment"][0], atol=1e-5)
            assert not weights[target:].any() and not weights[:, source:].any()
            np.testing.assert_allclose(weights[:target].sum(-1), 1.0, atol=1e-6)


def test_translations_and_scores_are_those_of_translate():
    model = shared_translator(beam_size=2)
    found, wanted = aligned(model, TEXTS[:2]), graph_of(model)(tf.constant(TEXTS[:2]))
    np.testing.assert_array_equal(found["translation"], wanted["translation"])
    np.testing.assert_allclose(found["score"], wanted["score"], atol=1e-5)


def test_nothing_to_translate():
    model = shared_translator(beam_size=2)
    found = aligned(model, ["", "  "])
    assert found["translation"].tolist() == [b"", b""]
    assert found["source_tokens"].tolist() == [[b"</s>"], [b"</s>"]]
    assert found["source_lengths"].tolist() == [1, 1]
    assert found["target_lengths"].tolist() == [0, 0] and found["score"].tolist() == [0.0, 0.0]
    assert found["target_tokens"].shape == (2, 0) and found["alignment"].shape == (2, 0, 1)
    found = aligned(model, np.array([], object))
    assert found["alignment"].shape == (0, 0, 0) and found["source_tokens"].shape == (0, 0)


def test_a_text_that_is_cut():
    found = aligned(shared_translator(beam_size=2), [" ".join(["garden"] * 50), "a ball"])
    assert found["truncated"].tolist() == [True, False]
    assert found["source_lengths"][0] == 40 and found["source_tokens"][0, 39] == b"</s>"


def test_few_bits_give_distributions_too():
    model = small_translator(dtype="bfloat16")
    found = aligned_once(model, [LONG])
    assert found["alignment"].dtype == np.float32
    np.testing.assert_allclose(found["alignment"].sum(-1), 1.0, atol=1e-5)


def test_separate_vocabularies_name_their_own_pieces():
    subwords, other = small_subwords(), small_subwords("unigram")
    transformer = shared_translator(beam_size=2).transformer
    model = Translator(transformer, subwords, other, beam_size=2, length_extra=2)
    found = aligned_once(model, ["a child"])
    assert found["source_tokens"][0].tolist() == [
        piece.encode() for piece in [*subwords.tokens("a child"), "</s>"]
    ]
    ids = [other.id_of(token.decode()) for token in found["target_tokens"][0]]
    assert other.detokenize(tf.constant([ids]))[0] == found["translation"][0]


@pytest.mark.slow
def test_the_export_aligns_alike(tmp_path):
    model = shared_translator(alignment_layer=0)
    exported = load_export(export(model, tmp_path))
    for texts in (TEXTS, [""], []):
        found = exported.run({"text": texts}, "alignment")
        expected = aligned(model, np.array(texts, object))
        assert sorted(found) == sorted(expected)
        for key, value in expected.items():
            if value.dtype == np.float32:
                np.testing.assert_allclose(found[key], value, atol=1e-5)
            else:
                np.testing.assert_array_equal(found[key], value)


def test_the_layer_is_kept(tmp_path):
    model = small_translator(alignment_layer=None)
    model.save_pretrained(tmp_path / "model")
    assert Translator.from_pretrained(tmp_path / "model").alignment_layer is None
    chosen = Translator.from_pretrained(tmp_path / "model", alignment_layer=0)
    assert chosen.alignment_layer == 0


@pytest.mark.parametrize("layer", [2, -3])
def test_the_layer_must_be_there(layer):
    message = rf"`alignment_layer` must be None or in \[-2, 1\]. Received: alignment_layer={layer}"
    with pytest.raises(ValueError, match=message):
        small_translator(decoder_layers=2, alignment_layer=layer)
