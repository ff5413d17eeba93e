"""Training on raw sentence pairs."""

import keras
import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from kbert.data.features.text_features import TextFeatures
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.optimization.adamw import AdamW
from kbert.tasks.translation.model import Translator
from kbert.text.subword_training import train_subwords
from tests.small_translator import small_translator

WORDS = {"red": "rot", "blue": "blau", "old": "alt", "big": "gross", "dog": "hund", "cat": "katze"}
SOURCES = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in ("dog", "cat")]
TARGETS = [" ".join(WORDS[word] for word in source.split()) for source in SOURCES]


@pytest.fixture(scope="module")
def subwords(tmp_path_factory):
    path = tmp_path_factory.mktemp("subwords") / "joint.model"
    return train_subwords([SOURCES, TARGETS], path, vocabulary_size=48)


def made(subwords):
    keras.utils.set_random_seed(5)
    transformer = Transformer(len(subwords), 32, 1, 1, 2, 64, 24, dropout=0.0)
    return Translator(transformer, subwords, subwords, beam_size=2, label_smoothing=0.0)


@pytest.mark.slow
def test_a_lexicon_is_learned_from_raw_strings(subwords):
    model = made(subwords)
    model.compile(AdamW(5e-3, 0.0, 0.9, 0.98, 1e-9))
    held_out = slice(0, None, 9)
    kept = [i for i in range(len(SOURCES)) if i % 9]
    known = [SOURCES[i] for i in kept], [TARGETS[i] for i in kept]
    history = model.fit(
        *known,
        batch_tokens=256,
        epochs=40,
        verbose=0,
        validation_data=(SOURCES[held_out], TARGETS[held_out]),
    ).history
    assert {"loss", "accuracy", "perplexity", "val_accuracy", "val_perplexity"} <= set(history)
    assert history["accuracy"][-1] > 0.95
    found = model.predict(SOURCES[held_out])
    right = sum(a == b for a, b in zip(found, TARGETS[held_out]))
    assert right >= 6  # of 8 sentences that it has not seen
    scores = model.evaluate(SOURCES[held_out], TARGETS[held_out], verbose=0, return_dict=True)
    assert scores["loss"] == pytest.approx(history["val_loss"][-1], abs=1e-5)
    # Perplexity is that of the loss where nothing is smoothed.
    assert scores["perplexity"] == pytest.approx(np.exp(scores["loss"]), rel=1e-4)


def test_datasets_and_ready_ids_pass_through(subwords):
    model = made(subwords)
    model.compile(run_eagerly=True)  # a handful of steps takes less than their graphs
    pairs = model.pack(SOURCES[:8], TARGETS[:8])
    dataset = model.dataset(pairs, batch_tokens=200)
    by_texts = model.evaluate(SOURCES[:8], TARGETS[:8], verbose=0)
    np.testing.assert_allclose(model.evaluate(dataset, verbose=0), by_texts, rtol=1e-5)
    inputs, labels = next(iter(model.dataset(pairs, batch_tokens=4000)))
    np.testing.assert_allclose(model.evaluate(inputs, labels, verbose=0), by_texts, rtol=1e-5)
    history = model.fit(dataset, epochs=2, verbose=0, validation_data=(SOURCES[:2], TARGETS[:2]))
    assert model.optimizer.iterations == 2 * len(list(dataset))
    assert {"loss", "accuracy", "val_accuracy", "val_perplexity"} <= set(history.history)


def test_what_cannot_be_trained_on_is_refused(subwords):
    model = made(subwords)
    model.compile()
    with pytest.raises(ValueError, match="`y` must be given with texts"):
        model.fit(["a"])
    with pytest.raises(ValueError, match="1 for 2 texts"):
        model.fit(["a", "b"], ["c"])
    with pytest.raises(ValueError, match="at least one text"):
        model.fit([], [])
    with pytest.raises(ValueError, match="1 targets and 2 sources"):
        model.pack(["a", "b"], ["c"])
    with pytest.raises(ValueError, match="must be a list of texts"):
        model.fit("a", "b")
    with pytest.raises(ValueError, match="`batch_size` must be None for pairs of .* batch_size=8"):
        model.fit(SOURCES, TARGETS, batch_size=8)


def test_tables_of_sentences(subwords):
    """The pairs of a table with `source` and `target` are those of its columns."""
    model = made(subwords)
    table = pd.DataFrame({"number": [1, 2], "source": SOURCES[:2], "target": TARGETS[:2]})
    ((inputs, targets),) = model.batching.text_batches(SOURCES[:2], TARGETS[:2])
    forms = ((table, None), (table, table["target"]), (table["source"], iter(TARGETS[:2])))
    for x, y in (*forms, ({"source": SOURCES[:2], "target": TARGETS[:2]}, None)):
        ((found, labels),) = model.batching.text_batches(x, y)
        for name in inputs:
            np.testing.assert_array_equal(found[name], inputs[name])
        np.testing.assert_array_equal(labels, targets)
    with pytest.raises(ValueError, match='must have the columns "source", or "text". .*number'):
        model.answers(table[["number"]])
    with pytest.raises(TypeError, match=r"`y\[0\]` must be str or bytes. Received: None"):
        model.batching.text_batches(["a"], [None])


def test_held_out_sentences_have_no_weights(subwords):
    model = made(subwords)
    model.compile()
    held_out = (SOURCES[:2], TARGETS[:2], [1.0, 2.0])
    with pytest.raises(ValueError, match=r"`validation_data` of texts must be .* 3 entries"):
        model.fit(SOURCES[:2], TARGETS[:2], validation_data=held_out, verbose=0)


def test_states_from_before_are_refused_where_bert_learns():
    model = small_translator(fused=True)
    pairs = model.pack(["the old man"], ["der alte Mann"])
    lengths = pairs.bert.lengths.astype("int64")
    states = TextFeatures([np.zeros((lengths.sum(), 8), "float16")], [0], [0], lengths)
    assert "bert_states" in next(iter(model.dataset(pairs, bert_states=states)))[0]
    model.transformer.train_bert = True
    message = "`bert_states` must be left out where BERT learns.*Received: bert_states"
    with pytest.raises(ValueError, match=message):
        model.dataset(pairs, bert_states=states)


def test_empty_sentences_are_trained_on_as_their_end(subwords):
    model = made(subwords)
    model.compile(run_eagerly=True)
    history = model.fit(["", "red dog"], ["", "rot hund"], verbose=0).history
    assert np.isfinite(history["loss"][0])
    assert model.pack([""], [""]).targets.token_ids.tolist() == [subwords.end_id]
    assert tf.reduce_all(model.pack(["red"], ["rot"]).sources.lengths > 0)


@pytest.fixture(scope="module")
def asked(subwords):
    """A model that is only asked; its graph is traced once."""
    return made(subwords)


@pytest.mark.parametrize("ask", ["translations", "answers"])
def test_columns_of_tables_keep_their_order(asked, ask):
    model = asked
    texts = ["old dog", "red cat", "big blue dog", "cat"]
    said = getattr(model, ask)
    assert said(pd.Series(texts, index=[3, 2, 1, 0])) == said(texts)
    assert said(pd.Series(texts[:2], index=[5, 9])) == said(texts[:2])


@pytest.mark.parametrize("ask", ["translations", "answers"])
def test_a_single_text_is_no_list(asked, ask):
    model = asked
    with pytest.raises(ValueError, match="must be a list of texts. Received: x='old dog'"):
        getattr(model, ask)("old dog")
    with pytest.raises(ValueError, match="`texts` must be a list of str or bytes. Received: a int"):
        getattr(model, ask)(3)


def test_answers_come_in_the_order_of_the_texts(asked):
    model = asked
    texts = ["old dog", "", "red blue old big cat", "cat", "old dog"]
    found = model.answers(texts)
    expected = [model.translations([text])[0] for text in texts]
    assert [one["translation"] for one in found] == model.predict(texts) == expected
    assert model.translations(texts) == expected
    first, last = found[0].pop("nbest")[0], found[4].pop("nbest")[0]
    for one, other in ((first, last), (found[0], found[4])):
        # a place in the batch may change how the last bit of a sum is rounded
        assert one.pop("score") == pytest.approx(other.pop("score"), rel=1e-6)
        assert one == other
    assert found[1] == {
        "translation": "",
        "score": 0.0,
        "nbest": [{"translation": "", "score": 0.0}],
        "truncated": False,
    }
    cut = model.answers(["red " * 100])[0]
    assert cut["truncated"] and model.answers([]) == []


def test_one_graph_serves_until_the_search_changes(subwords, monkeypatch):
    model = made(subwords)
    model.beam_size = 1  # whose graph is the smallest
    traced = []
    translate = model.translate
    monkeypatch.setattr(
        type(model), "translate", lambda self, text: traced.append(1) or translate(text)
    )
    one = model.answers(["old dog"])
    assert model.answers(["old dog"]) == one and len(traced) == 1
    model.transformer.target_embedding.embeddings.assign_add(
        keras.random.normal(model.transformer.target_embedding.embeddings.shape, seed=1)
    )
    other = model.answers(["old dog"])  # the graph reads the weights, it does not hold them
    assert other[0]["score"] != one[0]["score"] and len(traced) == 1
    model.length_ratio, model.length_extra = 0.0, 0
    assert model.answers(["old dog"])[0]["translation"] == "" and len(traced) == 2
