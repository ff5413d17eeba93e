"""Entities of texts: the whole way by the reference, no token lost, and the law of offsets."""

import json
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.models.bert import Bert
from kbert.tasks.ner.model import EntityRecognizer
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from kbert.text.sequences.word_boundaries import spaced_words, text_words
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, byte_characters
from tests.pipelines.awkward_texts import awkward_texts
from tests.pipelines.reading_reference import (
    check_place,
    same_row,
    token_probabilities,
    tokens_of,
)
from tests.small_pipelines import TAGS, TEXTS, TOKENIZER, VOCABULARY, random_texts, small_encoder
from tests.small_pipelines import small_entity_recognizer as small
from tests.text import tag_reference

NAMES = ["entity", "label", "score", "start", "end", "start_byte", "end_byte"]
SENTENCES = [
    ["the", "film"],
    [],
    ["goodness", "\u200b", "is", "U.K.", "é"],
    ["a", "b", "c", "film", "good", "##ness"] * 6,
    ["中国", "x" * 120, "שלום", "e\u0301"],
    ["\u0301"],
]


@pytest.fixture(scope="module")
def model():
    return small()


def check_row(row, text):
    """Types, shapes and the law of offsets: what holds of the entities of every text."""
    assert sorted(row) == sorted([*NAMES, "count"])
    count = int(row["count"])
    assert {row[name].shape for name in NAMES} == {(len(row["entity"]),)}
    before = 0
    for place in range(len(row["entity"])):
        cut, label, score, start, end, *in_bytes = (row[name][place] for name in NAMES)
        check_place(text, cut, int(start), int(end), tuple(map(int, in_bytes)))
        if place < count:
            assert cut and start >= before and 0 < score <= 1 + 1e-5
            assert label in (b"PER", b"LOC")
            before = int(end)
        else:
            assert (cut, label, score, start, end, *in_bytes) == (b"", b"", 0, 0, 0, 0, 0)


def words_of(text, spaced):
    """Tokens of each word, by rules that have tests of their own."""
    tensor = tf.constant([text])
    offsets = TOKENIZER.tokenize_with_offsets(tensor)
    units = spaced_words(tensor, offsets)[0] if spaced else text_words(offsets, VOCABULARY)
    return list(zip(units.first[0].numpy().tolist(), units.last[0].numpy().tolist()))


def expected_tags(model, text, spaced):
    """Tags of the words by the NumPy BERT and exact search, and their probabilities."""
    words = words_of(text, spaced)
    probabilities = token_probabilities(model, None, text)[[first for first, _ in words]]
    scores = np.log(probabilities)
    if len(words) <= 6:
        return words, probabilities, tag_reference.best_tags(scores, TAGS)
    return words, probabilities, tag_reference.best_score(scores, TAGS)


# --- entities --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["the good film", "a b!", "goodness e\u0301 中", "Very bad.", "film", "a-b (c)"]
)
def test_the_whole_way_by_the_reference(model, text):
    row = model.predict([text])[0]
    check_row(row, text)
    words, probabilities, tags = expected_tags(model, text, spaced=False)
    tokens = tokens_of(text)
    entities = tag_reference.entities([TAGS[i] for i in tags])
    assert row["count"] == len(entities)
    for place, (kind, first, last) in enumerate(entities):
        assert row["label"][place].decode() == kind
        start, end = tokens.start[words[first][0]], tokens.end[words[last][1]]
        assert (row["start"][place], row["end"][place]) == (start, end)
        of_words = [probabilities[w, tags[w]] for w in range(first, last + 1)]
        assert row["score"][place] == pytest.approx(np.mean(of_words), abs=2e-5)


def test_long_texts_are_read_to_their_end(model):
    """The score of the tags of all words is the best there is, by the NumPy BERT."""
    for text in random_texts(4, seed=8, longest=90):
        tags = model.predict_tags([text.split()])[0]
        assert tag_reference.spelled_right(tags)
        if not tags:
            continue
        _, probabilities, best = expected_tags(model, text, spaced=True)
        numbers = [TAGS.index(tag) for tag in tags]
        assert len(numbers) == len(probabilities)
        score = np.log(probabilities)[np.arange(len(numbers)), numbers].sum()
        if isinstance(best, tuple):
            best = np.log(probabilities)[np.arange(len(best)), best].sum()
        assert score == pytest.approx(best, abs=1e-3)


def test_awkward_texts(model):
    rows = model.predict(TEXTS)
    assert len(rows) == len(TEXTS) and sum(int(row["count"]) for row in rows) > 5
    for row, text in zip(rows, TEXTS):
        check_row(row, text)
        if not tokens_of(text).ids:
            assert row["count"] == 0


@settings(max_examples=20)
@given(texts=st.lists(awkward_texts, max_size=5))
def test_random_texts(model, texts):
    rows = model.predict(texts)
    assert len(rows) == len(texts)
    for row, text in zip(rows, texts):
        check_row(row, text)


def test_rows_do_not_influence_each_other(model):
    together = model.predict(TEXTS)
    for text, row in zip(TEXTS, together):
        alone = model.predict([text])[0]
        count = int(row["count"])
        assert alone["count"] == count
        for name in NAMES:
            if name == "score":
                np.testing.assert_allclose(alone[name][:count], row[name][:count], atol=1e-5)
            else:
                assert alone[name][:count].tolist() == row[name][:count].tolist()


@pytest.mark.slow
def test_a_million_characters_without_a_space(model):
    texts = ["x" * 1_000_000, "." * 20_000]
    for text, row in zip(texts, model.predict(texts)):
        check_row(row, text)


def test_lone_surrogates_keep_their_places(model):
    whole, broken = "a \ufffd\ufffd good film b c", "a \ud800\udfff good film b c"
    expected, found = model.predict([whole, broken])
    same_row(found, expected)


def test_forms_of_texts(model):
    texts = ["the good film", "é bad"]
    expected = model.predict(texts)
    for x in (tuple(texts), np.array(texts), np.array(texts, object), tf.constant(texts)):
        for row, other in zip(model.predict(x), expected, strict=True):
            same_row(row, other)
    message = "`x` must be a list of texts. Received: x='the good film', a single one"
    with pytest.raises(ValueError, match=message):
        model.predict(texts[0])
    with pytest.raises(TypeError, match=r"`x\[1\]` must be str or bytes. Received: None"):
        model.predict(["a", None])
    logits = model.predict({"token_ids": np.array([[2, 7, 3]])}, verbose=0)
    assert logits.shape == (1, 3, 5)


def test_answers_for_people(model):
    texts = ["the good film " * 3, ""]
    found, row = model.answers(texts), model.predict(texts)[0]
    assert len(found[0]) == row["count"] > 0 and found[1] == []
    for place, entity in enumerate(found[0]):
        assert sorted(entity) == sorted(NAMES)
        assert entity["entity"] == texts[0][entity["start"] : entity["end"]]
        assert entity["label"] == row["label"][place].decode()
    assert model.answers([]) == [] and model.predict([]) == []


# --- tags of given words ---------------------------------------------------------------------


def test_tags_of_given_words(model):
    found = model.predict_tags(SENTENCES)
    assert [len(tags) for tags in found] == [len(words) for words in SENTENCES]
    for tags, words in zip(found, SENTENCES):
        assert set(tags) <= set(TAGS)
        text = " ".join(words)
        kept = [i for i, word in enumerate(words) if tokens_of(word).ids]
        # Words without a token are no part of an entity, and stand in no other's way.
        assert all(tags[i] == "O" for i in range(len(words)) if i not in kept)
        assert tag_reference.spelled_right([tags[i] for i in kept])
        if 0 < len(kept) <= 6:
            _, _, expected = expected_tags(model, text, spaced=True)
            assert [tags[i] for i in kept] == [TAGS[i] for i in expected]


def test_words_as_a_graph_function(model):
    texts = ["a b", "", "x \u200b y", "a  b", " "]
    found = model.tag(tf.constant(texts))
    assert found["count"].numpy().tolist() == [len(text.split(" ")) for text in texts]
    tags = found["tags"].numpy()
    assert tags.shape == (5, 3)
    assert tags[2, 1] == tags[3, 1] == b"O"  # nothing to tag there
    for row, count in zip(tags, found["count"].numpy()):
        assert all(row[:count]) and not any(row[count:])
    nothing = model.tag(tf.constant([], tf.string, shape=(0,)))
    assert nothing["tags"].shape == (0, 0) and nothing["count"].shape == (0,)


def test_wrong_sentences(model):
    with pytest.raises(ValueError, match="`sentences` must be lists of words. Received: someth"):
        model.predict_tags({"token_ids": np.zeros((1, 2))})
    with pytest.raises(ValueError, match=re.escape("`x[0]` must be a list of words.")):
        model.predict_tags(["a b"])
    with pytest.raises(ValueError, match="`x` must be texts; `predict_tags` takes .*'film'"):
        model.predict([["a", "film"]])


# --- training --------------------------------------------------------------------------------


def tags_for(sentences):
    """Some tag for each word, so that every one of them can be told from its neighbours."""
    return [[TAGS[i % 2] for i in range(len(words))] for words in sentences]


def test_every_word_counts_once_and_no_token_is_dropped(model):
    sentences = [*SENTENCES, *(text.split() for text in random_texts(8, seed=3, longest=80))]
    y = tags_for(sentences)
    windows, targets = model.examples(model.read_inputs(sentences), y)
    packed = windows.packed
    assert targets.shape == (packed.tokens,) and targets.dtype == np.int32
    # Every token of every text is in some window, and owned by exactly one.
    texts = [" ".join(words) for words in sentences]
    owned = [[] for _ in texts]
    for row, start, end in zip(windows.row, windows.owned_from, windows.owned_to):
        owned[row] += range(start, end)
    assert owned == [list(range(len(tokens_of(text).ids))) for text in texts]
    # The targets that count are the first tokens of the words, each once, in the window of its own.
    seen = [[] for _ in texts]
    for number, row in enumerate(windows.row):
        begin = packed.starts[number] + windows.begin[number]
        for cell in range(packed.starts[number], packed.starts[number] + packed.lengths[number]):
            if targets[cell] >= 0:
                token = int(cell - begin + windows.first[number])
                assert windows.owned_from[number] <= token < windows.owned_to[number]
                seen[row].append((token, TAGS[targets[cell]]))
    for row, (words, tags) in enumerate(zip(sentences, y)):
        first, before = [], 0
        for word, tag in zip(words, tags):
            tokens = len(tokens_of(word).ids)
            if tokens:
                first.append((before, tag))
            before += tokens
        assert sorted(seen[row]) == first
    counted = sum(bool(tokens_of(word).ids) for words in sentences for word in words)
    assert int((targets >= 0).sum()) == counted


def test_targets_by_hand(model):
    """[CLS] good ##ness is(i ##s) [SEP]: the first pieces carry the tags, the others nothing."""
    windows, targets = model.examples(model.read_inputs([["Goodness", "is"]]), [["B-PER", "O"]])
    names = [VOCABULARY.tokens[i] for i in windows.packed.token_ids]
    assert names == ["[CLS]", "good", "##ness", "i", "##s", "[SEP]"]
    assert targets.tolist() == [-1, 1, -1, 0, -1, -1]


def test_the_loss_of_evaluate_is_that_of_the_first_tokens():
    model = small()
    model.compile(run_eagerly=True)
    sentences = [["the", "goodness", "is"], ["x"] * 40, ["film"]]
    y = tags_for(sentences)
    found = model.evaluate(sentences, y, verbose=0, return_dict=True)
    losses, right = [], []
    for words, tags in zip(sentences, y):
        text = " ".join(words)
        firsts = [first for first, _ in words_of(text, spaced=True)]
        p = token_probabilities(model, None, text)[firsts]
        numbers = [TAGS.index(tag) for tag in tags]
        losses += list(-np.log(p[np.arange(len(numbers)), numbers]))
        right += list(p.argmax(1) == numbers)
    assert found["loss"] == pytest.approx(np.mean(losses), rel=1e-4)
    assert found["accuracy"] == pytest.approx(np.mean(right))


@pytest.mark.slow
def test_it_learns_what_it_is_shown(tmp_path):
    sentences = [["good", "film", "a", "very", "bad"] * 6, ["bad", "film", "a", "the"], ["very"]]
    y = [["B-PER", "I-PER", "O", "B-LOC", "O"] * 6, ["O", "O", "O", "B-LOC"], ["B-LOC"]]
    model = small()
    model.compile(keras.optimizers.Adam(0.03))
    history = model.fit(sentences * 16, y * 16, batch_size=8, epochs=8, verbose=0).history
    assert history["loss"][-1] < 0.1 * history["loss"][0]
    assert model.predict_tags(sentences) == y
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config() and again.labels == list(TAGS)
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations)
    assert again.tokenizer.vocabulary == VOCABULARY
    text = tf.constant([" ".join(words) for words in sentences])
    np.testing.assert_array_equal(again.tag(text)["tags"], model.tag(text)["tags"])


@pytest.mark.parametrize(
    "y, message",
    [
        (
            [["O"], ["O"]],
            "`y[0]` must have a tag for each of the 2 words. Received: 1",
        ),
        (
            [["O", "B-ORG"], ["PER"]],
            "`y[0]` must hold tags of ['O', 'B-PER', 'I-PER', 'B-LOC', 'I-LOC']. "
            "Received: ['B-ORG']",
        ),
        ([["O", "O"]], "`y` must have one entry a text. Received: 1 for 2 texts"),
        (None, "`y` must be given with texts. Received: y=None"),
    ],
)
def test_wrong_tags(model, y, message):
    model.compile()
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit([["a", "b"], ["c"]], y, verbose=0)


def test_labels_that_no_sentence_can_have():
    message = "each tag can stand in a sentence: .* Received: .*, of which I-PER cannot"
    with pytest.raises(ValueError, match=message):
        small(["O", "I-PER"])


# --- construction, saving and loading --------------------------------------------------------


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
def test_saved_and_loaded(tmp_path, format):
    labels = ["O", "B-X", "I-X", "E-X", "S-X"]
    model = small(labels, stride=6, dropout=0.25)
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    if format == "kbert":
        again = EntityRecognizer.from_pretrained(folder)
        assert again.get_config() == model.get_config()
    else:
        again = EntityRecognizer.from_pretrained(folder, max_sequence_length=24, stride=6)
    assert again.labels == labels
    for one, other in zip(again.weights, model.weights, strict=True):
        if "pooler" not in one.path:  # Hugging Face keeps none beside a head over all tokens
            np.testing.assert_array_equal(one, other)
    text = tf.constant(["the good film " * 9])
    expected, found = model.recognize(text), again.recognize(text)
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value)


def test_the_tags_of_others_may_be_those_of_iob1(tmp_path):
    model = small()
    assert model.strict_tags and model.get_config()["strict_tags"]
    theirs = model.save_pretrained(tmp_path / "theirs", format="huggingface")
    assert EntityRecognizer.from_pretrained(theirs).strict_tags
    config = json.loads((theirs / "config.json").read_text())
    del config["kbert"]  # as others write it
    (theirs / "config.json").write_text(json.dumps(config))
    loaded = EntityRecognizer.from_pretrained(theirs, max_sequence_length=24, stride=8)
    assert not loaded.strict_tags
    strict = {"max_sequence_length": 24, "stride": 8, "strict_tags": True}
    assert EntityRecognizer.from_pretrained(theirs, **strict).strict_tags
    again = EntityRecognizer.from_pretrained(loaded.save_pretrained(tmp_path / "ours"))
    assert not again.strict_tags and again.get_config() == loaded.get_config()
    inside = TAGS.index("I-PER")
    bias = next(v for v in loaded.trainable_variables if v.shape == (len(TAGS),))
    bias.assign(100.0 * np.eye(len(TAGS))[inside])
    assert [one["label"] for one in loaded.answers(["good film"])[0]] == ["PER"]
    # Without B-, labels are those of IOB1 alone.
    assert small(["O", "I-PER"], strict_tags=False).labels == ["O", "I-PER"]


def test_a_new_head_on_an_encoder(tmp_path):
    folder = small_encoder().save_pretrained(tmp_path / "encoder")
    (folder / "vocabulary.txt").write_text("".join(f"{t}\n" for t in VOCABULARY.tokens))
    model = EntityRecognizer.from_pretrained(folder, labels=TAGS, stride=8)
    assert (model.max_sequence_length, model.stride, model.labels) == (32, 8, list(TAGS))
    with pytest.raises(ValueError, match="`labels` must be given for an encoder without a"):
        EntityRecognizer.from_pretrained(folder)


@pytest.mark.parametrize(
    "labels",
    [
        ["B-PER", "I-PER"],
        ["O", "PER"],
        ["O", "B-"],
        ["O", "B-PER", "B-PER"],
        ["O", "X-PER"],
        [],
    ],
)
def test_wrong_labels(labels):
    message = (
        '`labels` must be different tags, "O" and such as "B-PER" and "I-PER". '
        f"Received: labels={labels}"
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        small(labels)


def test_wrong_sizes():
    with pytest.raises(ValueError, match="`max_sequence_length` must be .* 32., the encoder"):
        small(max_sequence_length=33)
    message = "`max_sequence_length` must be at least 25: the special tokens, the overlap and one"
    with pytest.raises(ValueError, match=message):
        small(stride=22)


def test_only_outside():
    """A model that knows no entity finds none."""
    model = small(["O"])
    found = model.recognize(tf.constant(["the film", ""]))
    assert found["count"].numpy().tolist() == [0, 0] and found["label"].shape == (2, 0)


def test_defaults():
    encoder = Bert(len(VOCABULARY), 8, 1, 2, 8, 128)
    model = EntityRecognizer(encoder, TOKENIZER, TAGS)
    assert (model.max_sequence_length, model.stride, model.dropout) == (128, 32, 0.1)
    assert model.name == "entity_recognizer" and model.huggingface_config()["id2label"]["3"] == (
        "B-LOC"
    )


def test_a_tokenizer_whose_words_have_the_space_before_them():
    names = [*ROBERTA_TOKENS.names, *byte_characters()]
    tokenizer = ByteLevelBPE(Vocabulary(names, ROBERTA_TOKENS), [], trim_offsets=False)
    with pytest.raises(ValueError, match="`tokenizer` must have trim_offsets=True for entities"):
        EntityRecognizer(small_encoder(), tokenizer, ["O"])
    assert EntityRecognizer.tokenizer_rules == {"trim_offsets": True}  # of loaded models
