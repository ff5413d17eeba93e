"""Reading by B, I and O: any number of answers, opinions as distributions, the law of offsets."""

import functools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.data.batches.windowed_examples import window_examples
from kbert.models.bert import Bert
from kbert.tasks.span_tagging.model import OUTSIDE_BIASES, TAGS, SpanTagger
from tests.pipelines.awkward_texts import awkward_texts
from tests.pipelines.reading_reference import check_place, token_probabilities, tokens_of
from tests.small_pipelines import TEXTS, TOKENIZER, VOCABULARY, small_encoder
from tests.small_pipelines import small_span_tagger as small
from tests.text import tag_reference

NAMES = ["answers", "scores", "starts", "ends"]
CONTEXT = "the good film, the bad film! goodness"
# Tokens: the0 good1 film2 ,3 the4 bad5 film6 !7 good8 ##ness9


@pytest.fixture(scope="module")
def model():
    return small()


def check_row(row, context):
    """Types, shapes and the law of offsets: what holds of the answers of every question."""
    assert sorted(row) == sorted([*NAMES, "count"])
    assert {row[name].shape for name in NAMES} == {(len(row["answers"]),)}
    before = 0
    for place in range(len(row["answers"])):
        cut, score, start, end = (row[name][place] for name in NAMES)
        check_place(context, cut, int(start), int(end))
        if place < row["count"]:
            assert cut and start >= before and 0 < score <= 1 + 1e-5
            before = int(end)
        else:
            assert (cut, score, start, end) == (b"", 0, 0, 0)


@pytest.mark.parametrize(
    "question, context",
    [("a film?", "the good film!"), ("", "a b c"), ("very " * 9, "goodness 中"), ("x", "film")],
)
def test_the_whole_way_by_the_reference(model, question, context):
    row = model.predict(([question], [context]))[0]
    check_row(row, context)
    tokens = tokens_of(context)
    probabilities = token_probabilities(model, question, context)
    tags = tag_reference.best_tags(np.log(probabilities), TAGS)
    expected = tag_reference.entities([TAGS[i] for i in tags])
    assert row["count"] == len(expected)
    for place, (_, first, last) in enumerate(expected):
        assert (row["starts"][place], row["ends"][place]) == (tokens.start[first], tokens.end[last])
        of_tokens = [probabilities[i, tags[i]] for i in range(first, last + 1)]
        assert row["scores"][place] == pytest.approx(np.mean(of_tokens), abs=2e-5)


def test_a_bias_against_or_for_nothing(model, monkeypatch):
    """By the reference, with each bias of O."""
    few = OUTSIDE_BIASES[0], 0.0, OUTSIDE_BIASES[-1]  # TensorFlow optimizes a part for each
    monkeypatch.setattr("kbert.tasks.span_tagging.model.OUTSIDE_BIASES", few)
    questions, contexts = ["a film?", ""], [CONTEXT[:14], "a b c"]
    found = model.spans_with_biases(questions, contexts)
    assert list(found) == list(few)
    counts = []
    for bias, rows in found.items():
        for question, context, spans in zip(questions, contexts, rows, strict=True):
            tokens = tokens_of(context)
            scores = np.log(token_probabilities(model, question, context)) + [0.0, 0.0, bias]
            tags = tag_reference.best_tags(scores, TAGS)
            expected = tag_reference.entities([TAGS[i] for i in tags])
            assert spans == [(tokens.start[a], tokens.end[b]) for _, a, b in expected]
        counts.append(sum(end - start for row in rows for start, end in row))
    assert counts == sorted(counts, reverse=True) and len(set(counts)) > 1


@pytest.mark.slow
def test_predict_has_the_bias_that_is_set():
    questions, contexts = ["a film?", ""], [CONTEXT[:14], "a b c"]
    found = small().spans_with_biases(questions, contexts)  # with all biases in a graph of its own
    biased = small(outside_bias=OUTSIDE_BIASES[0])
    rows = biased.predict((questions, contexts))
    count = [int(row["count"]) for row in rows]
    places = [list(zip(row["starts"], row["ends"]))[:n] for row, n in zip(rows, count)]
    assert places == found[OUTSIDE_BIASES[0]]
    biased.outside_bias = 0.0  # a graph that was traced before does not stay
    again = biased.predict((questions, contexts))
    assert [int(row["count"]) for row in again] == [len(spans) for spans in found[0.0]]


def test_awkward_texts(model):
    pairs = [(question, context) for question in TEXTS[:4] for context in TEXTS]
    rows = model.predict(([q for q, _ in pairs], [c for _, c in pairs]))
    assert sum(int(row["count"]) for row in rows) > 20
    for row, (_, context) in zip(rows, pairs, strict=True):
        check_row(row, context)
        if not tokens_of(context).ids:
            assert row["count"] == 0


@settings(max_examples=20)
@given(pairs=st.lists(st.tuples(awkward_texts, awkward_texts), max_size=5))
def test_random_texts(model, pairs):
    rows = model.predict(([q for q, _ in pairs], [c for _, c in pairs]))
    for row, (_, context) in zip(rows, pairs, strict=True):
        check_row(row, context)


def test_rows_do_not_influence_each_other(model):
    questions = ["film", "", "a?"] * 5
    together = model.predict((questions[: len(TEXTS)], TEXTS))
    for question, context, row in zip(questions, TEXTS, together):
        alone = model.predict(([question], [context]))[0]
        count = int(row["count"])
        assert alone["count"] == count
        np.testing.assert_allclose(alone["scores"][:count], row["scores"][:count], atol=1e-5)
        for name in ("answers", "starts", "ends"):
            assert alone[name][:count].tolist() == row[name][:count].tolist()


def test_a_million_characters_without_a_space(model):
    contexts = ["x" * 1_000_000, "." * 20_000]
    for context, row in zip(contexts, model.predict((["film"] * 2, contexts))):
        check_row(row, context)


def test_answers_for_people(model):
    x = {"question": ["a film?", "a"], "context": [CONTEXT, ""]}
    found, row = model.answers(x), model.predict(x)[0]
    assert len(found[0]) == row["count"] > 0 and found[1] == []
    for one in found[0]:
        assert sorted(one) == ["answer", "end", "score", "start"]
        assert one["answer"] == CONTEXT[one["start"] : one["end"]]
    assert model.answers(([], [])) == []


# --- opinions --------------------------------------------------------------------------------


@functools.cache  # it traces graphs
def windows_of(context):
    """The windows of `small`, for the question "a"."""
    return window_examples(TOKENIZER, [context], ["a"], 24, 4, 6)


def shares_of(model, answers, context=CONTEXT):
    """The targets as rows of the context's tokens, and how often each token counts."""
    model.batching.windows = lambda contexts, questions: windows_of(contexts[0])
    windows, targets = model.examples(model.read_inputs((["a"], [context])), [answers])
    assert targets.shape == (windows.packed.tokens, 3) and targets.dtype == np.float32
    tokens = len(tokens_of(context).ids)
    found, counted = np.zeros((tokens, 3)), np.zeros(tokens, int)
    for number in range(len(windows)):
        begin = windows.packed.starts[number]
        for cell in range(windows.packed.lengths[number]):
            if targets[begin + cell].any():
                token = cell - windows.begin[number] + windows.first[number]
                assert 0 <= cell - windows.begin[number] < windows.size[number]
                found[token] += targets[begin + cell]
                counted[token] += 1
    return found, counted


def test_opinions_by_hand(model):
    """Two annotators say that "good film" is the answer, one says "the good film"."""
    answers = [("good film", 4), ("good film", 4), ("the good film", 0)]
    found, counted = shares_of(model, answers)
    third = 1 / 3
    by_hand = [[third, 0, 2 * third], [2 * third, third, 0], [0, 1, 0], *[[0, 0, 1]] * 7]
    np.testing.assert_allclose(found, by_hand, rtol=1e-6)
    assert counted.tolist() == [1] * 10


def test_an_opinion_of_several_answers(model):
    """One says "good" and "bad film", one "bad", one that there is no answer."""
    answers = [[("good", 4), ("bad film", 19)], ("bad", 19), []]
    found, _ = shares_of(model, answers)
    third = 1 / 3
    by_hand = np.tile([0.0, 0.0, 1.0], (10, 1))
    by_hand[1], by_hand[5] = [third, 0, 2 * third], [2 * third, 0, third]
    by_hand[6] = [0, third, 2 * third]
    np.testing.assert_allclose(found, by_hand, rtol=1e-6)


def test_shares_are_distributions_whatever_the_answers_are(model):
    # One opinion whose answers overlap, beside another.
    answers = [[("good film", 4), ("film", 9), ("the good film", 0)], ("goodness", 29)]
    found, _ = shares_of(model, answers)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-6)


def test_the_first_opinion_alone():
    model = small(soft=False)
    expected = np.tile([0.0, 0.0, 1.0], (10, 1))
    expected[5] = [1, 0, 0]
    for first in (("bad", 19), [("bad", 19)]):
        found, _ = shares_of(model, [first, ("good film", 4)])
        np.testing.assert_array_equal(found, expected)


def test_no_answer_is_all_outside(model):
    found, counted = shares_of(model, [])
    np.testing.assert_array_equal(found, [[0, 0, 1]] * 10)
    assert counted.tolist() == [1] * 10


def test_every_token_counts_in_one_window(model):
    context = "good film a " * 40
    answers = [("film a good", 5), ("good", 240)]
    found, counted = shares_of(model, answers, context)
    assert counted.tolist() == [1] * 120
    expected = np.tile([0.0, 0.0, 1.0], (120, 1))
    expected[1], expected[2:4], expected[60] = [0.5, 0, 0.5], [0, 0.5, 0.5], [0.5, 0, 0.5]
    np.testing.assert_array_equal(found, expected)


def test_the_loss_is_that_of_the_texts_tokens():
    """-sum_i sum_j t_ij log p_ij over the paragraph's tokens: question and [SEP] count nothing."""
    model = small()
    model.compile(run_eagerly=True)
    x = (["a film?", "very very", "x"], [CONTEXT[:14], "a good film", "b"])
    y = [[("good film", 4), ("film", 9)], [], [("b", 0)]]
    found = model.evaluate(x, y, verbose=0, return_dict=True)
    shares = [
        # the good film ,: one says B I for tokens 1 and 2, the other B for token 2
        [[0, 0, 1], [0.5, 0, 0.5], [0.5, 0.5, 0], [0, 0, 1]],
        [[0, 0, 1]] * 3,
        [[1, 0, 0]],
    ]
    sums = []
    for question, context, of_text in zip(*x, shares):
        p = token_probabilities(model, question, context)
        sums.append(-(np.array(of_text) * np.log(p)).sum())
    assert found["loss"] == pytest.approx(np.mean(sums), rel=1e-4)  # a window each


@pytest.mark.slow
def test_it_learns_what_it_is_shown(tmp_path):
    model = small()
    model.compile(keras.optimizers.Adam(0.02))
    x = (["good", "film", "very"], ["a good film", "the bad a", "the a"])
    y = [[("good film", 2)], [("bad", 4)], []]
    many = tuple(column * 40 for column in x)
    history = model.fit(many, y * 40, batch_size=8, epochs=4, verbose=0).history
    assert history["loss"][-1] < 0.1 * history["loss"][0]
    found = [[(one["answer"], one["start"]) for one in row] for row in model.answers(x)]
    assert found == y
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config() and again.loss.per == "sequence"
    text = [tf.constant(column) for column in x]
    for name, value in model.read(*text).items():
        np.testing.assert_array_equal(again.read(*text)[name], value)


def test_wrong_answers(model):
    model.compile()
    message = "`y[0]` must hold answers that stand in the context at their start."
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit((["a"], [CONTEXT]), [[("film", 0)]], verbose=0)


# --- construction, saving and loading --------------------------------------------------------


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
def test_saved_and_loaded(tmp_path, format):
    settings = {"soft": False, "stride": 5, "max_question_length": 7, "outside_bias": -0.5}
    model = small(dropout=0.25, **settings)
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    if format == "kbert":
        again = SpanTagger.from_pretrained(folder)
        assert again.get_config() == model.get_config()
    else:
        again = SpanTagger.from_pretrained(folder, max_sequence_length=24, **settings)
    for one, other in zip(again.weights, model.weights, strict=True):
        if "pooler" not in one.path:  # Hugging Face keeps none beside a head over all tokens
            np.testing.assert_array_equal(one, other)
    assert again.soft is False


def test_a_new_head_on_an_encoder(tmp_path):
    folder = small_encoder().save_pretrained(tmp_path / "encoder")
    (folder / "vocabulary.txt").write_text("".join(f"{t}\n" for t in VOCABULARY.tokens))
    model = SpanTagger.from_pretrained(folder, stride=4, max_question_length=8)
    assert model.max_sequence_length == 32 and model.num_labels == 3


def test_wrong_sizes():
    with pytest.raises(ValueError, match="`max_sequence_length` must be .* 32., the encoder"):
        small(max_sequence_length=33)
    with pytest.raises(ValueError, match="`max_question_length` must be at least 1."):
        small(max_question_length=0)


def test_defaults():
    model = SpanTagger(Bert(len(VOCABULARY), 8, 1, 2, 8, 384), TOKENIZER)
    found = (model.max_sequence_length, model.stride, model.max_question_length)
    assert found == (384, 128, 64) and model.soft and model.dropout == 0.1
    assert model.name == "span_tagger" and model.tag_names == ("B", "I", "O")
