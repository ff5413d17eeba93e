"""Probabilities of tokens by the window that answers for each, and tags of words."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.tasks.ner import token_tagging
from kbert.tasks.ner.token_tagging import TokenTagging
from kbert.text.sequences.entities import best_path, tag_rules
from kbert.text.sequences.word_boundaries import every_token, text_words
from tests.pipelines.reading_reference import token_probabilities, tokens_of
from tests.small_pipelines import (
    TAGS,
    TEXTS,
    VOCABULARY,
    random_texts,
    small_entity_recognizer,
    small_span_tagger,
)
from tests.text import tag_reference

TEXT = [*random_texts(6, seed=5, longest=50), "", "a"]


@pytest.fixture(scope="module")
def model():
    return small_entity_recognizer()


def tokenized(model, texts):
    text = tf.constant([t.encode() if isinstance(t, str) else t for t in texts])
    return text, model.tokenizer.tokenize_with_offsets(text)


def test_every_token_gets_the_distribution_of_its_window(model):
    _, offsets = tokenized(model, TEXT)
    found = model.batching.token_probabilities(offsets, None)
    expected = np.concatenate([token_probabilities(model, None, text) for text in TEXT])
    assert found.shape == (sum(len(tokens_of(text).ids) for text in TEXT), 5)
    np.testing.assert_allclose(found, expected, atol=2e-5)
    np.testing.assert_allclose(tf.reduce_sum(found, axis=1), 1.0, atol=1e-5)  # none is left out


def test_with_questions():
    model = small_span_tagger()
    _, offsets = tokenized(model, TEXT)
    asked = ["film", "", "very very very very good bad", *["a!"] * 5]
    questions = model.tokenizer.tokenize(tf.constant(asked))
    found = model.batching.token_probabilities(offsets, questions)
    both = zip(asked, TEXT, strict=True)
    expected = np.concatenate([token_probabilities(model, q, text) for q, text in both])
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_a_long_text_does_not_make_short_ones_large(model, monkeypatch):
    """A text of 1 MB among 200 short ones took gigabytes, and ended the process."""
    texts = ["good film " * 40, "", *TEXT, "a b c"]
    text, offsets = tokenized(model, texts)
    units = text_words(offsets, model.tokenizer.vocabulary)
    probabilities = model.batching.token_probabilities(offsets, None)
    expected = model.batching.tag_words(text, offsets, units, probabilities)  # in one piece
    cells = []

    def counted(scores, lengths, rules):
        cells.append(scores.shape[0] * scores.shape[1])
        return best_path(scores, lengths, rules)

    monkeypatch.setattr(token_tagging, "best_path", counted)
    monkeypatch.setattr(token_tagging, "_CHUNK_WORDS", 90)
    found = model.batching.tag_words(text, offsets, units, probabilities)
    assert max(cells) <= 90 and len(cells) > 2
    both = (tf.nest.flatten(x, expand_composites=True) for x in (found, expected))
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)
    assert found.count.numpy().max() > 1


@pytest.mark.parametrize("texts", [["", " "], [b"\xff"]])
def test_texts_without_tokens(model, texts):
    text, offsets = tokenized(model, texts)
    probabilities = model.batching.token_probabilities(offsets, None)
    assert probabilities.shape == (0, 5)
    found = model.batching.tag_words(text, offsets, every_token(offsets), probabilities)
    assert found.path.shape == (len(texts), 0) and found.count.numpy().tolist() == [0] * len(texts)
    assert found.texts.text.shape == found.score.shape == found.kind.shape == (len(texts), 0)


def test_tags_of_words_are_decided_at_their_first_tokens(model):
    """Whatever the probabilities are: here drawn at random, so that many entities come."""
    text, offsets = tokenized(model, TEXTS)
    units = text_words(offsets, VOCABULARY)
    tokens = int(tf.size(offsets.token_ids.values))
    probabilities = np.random.default_rng(4).dirichlet(np.full(5, 0.4), tokens).astype("float32")
    found = model.batching.tag_words(text, offsets, units, tf.constant(probabilities))
    starts = offsets.token_ids.row_starts().numpy()
    most = 0
    for row in range(len(TEXTS)):
        first, last = units.first[row].numpy(), units.last[row].numpy()
        own = probabilities[starts[row] + first]
        path = found.path[row].numpy()[: len(first)]
        scores = np.log(own.astype("float64") + 1e-30)
        if len(first):
            got = scores[np.arange(len(first)), path].sum()
            assert got == pytest.approx(tag_reference.best_score(scores, TAGS), abs=1e-3)
        entities = tag_reference.entities([TAGS[i] for i in path])
        assert found.count[row] == len(entities)
        most = max(most, len(entities))
        for place, (kind, begin, end) in enumerate(entities):
            assert ["PER", "LOC"][found.kind[row, place]] == kind
            words = own[np.arange(begin, end + 1), path[begin : end + 1]]
            assert float(found.score[row, place]) == pytest.approx(words.mean(), rel=1e-4)
            assert found.texts.start[row, place] == offsets.start[row][first[begin]]
            assert found.texts.end[row, place] == offsets.end[row][last[end]]
            raw = text[row].numpy()
            cut = raw[found.texts.start_byte[row, place] : found.texts.end_byte[row, place]]
            assert found.texts.text[row, place] == cut
        for column in (*found.texts, found.score, found.kind):
            rest = column[row, len(entities) :].numpy()
            assert not rest.any() if rest.dtype != object else set(rest) <= {b""}
    assert found.score.shape == (len(TEXTS), most) and most > 3


def test_targets_of_tokens_become_batches(model):
    windows = model.batching.windows(["a good film", "bad " * 30])
    ids = np.arange(windows.packed.tokens, dtype="int32")
    for inputs, labels in model.dataset(windows, ids, batch_size=2):
        real = inputs["padding_mask"].numpy()
        np.testing.assert_array_equal(labels.numpy()[~real], -1)
        np.testing.assert_array_equal(
            windows.packed.token_ids[labels.numpy()[real]], inputs["token_ids"].numpy()[real]
        )


def test_attributes(model):
    assert isinstance(model.batching, TokenTagging)
    assert model.tag_names == TAGS and model.num_labels == 5
    begin = tag_rules(model.tag_names).begin
    np.testing.assert_array_equal(begin, [True, True, False, True, False])
