"""Answers against every span of every window counted out, and the law of offsets on any text."""

import json
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.data.questions.question_examples import Answer, QuestionExamples
from kbert.models.bert import Bert
from kbert.tasks.question_answering.model import QuestionAnswerer
from tests import numpy_reference as reference
from tests.pipelines.awkward_texts import awkward_texts
from tests.pipelines.reading_reference import (
    check_place,
    decoded,
    encoded,
    read,
    same_row,
    tokens_of,
    window_logits,
)
from tests.small_pipelines import TEXTS, TOKENIZER, VOCABULARY, small_encoder
from tests.small_pipelines import small_question_answerer as small

LONG = "the good film, a bad film! very goodness. " * 3
NAMES = {
    **{name: () for name in ("answer", "score", "start", "end", "start_byte", "end_byte")},
    **{name: () for name in ("null_score", "has_answer", "truncated")},
    **{f"nbest_{name}": (5,) for name in ("answer", "score", "start", "end")},
}
ROWS = [
    ("a film?", LONG),
    ("very very bad film or good", "a good film"),  # exactly six tokens, in one window
    ("very very very bad film or good", LONG),  # one more: it is cut
    ("", "the film"),
    ("what", "x"),
    (b"\xff film \xc3", b"\xff\xfe the \xc3 good \xe4\xb8film"),
    ("שלום", "שלום עולם! the film, e\u0301 good\u200bness \U0001f600"),
]


@pytest.fixture(scope="module")
def model():
    return small(max_answer_length=4)


@pytest.fixture(scope="module")
def rows(model):
    questions, contexts = zip(*ROWS)
    return model.predict((list(questions), list(contexts)))


def check_row(row, question, context):
    """Types, shapes and the law of offsets: what holds of every answer."""
    assert {name: np.shape(value) for name, value in row.items()} == NAMES
    places = (int(row["start_byte"]), int(row["end_byte"]))
    check_place(context, row["answer"], int(row["start"]), int(row["end"]), places)
    for cut, start, end, score in zip(
        *(row[f"nbest_{name}"] for name in ("answer", "start", "end", "score"))
    ):
        check_place(context, cut, int(start), int(end))
        assert 0.0 <= score <= 1.0 + 1e-5
    assert (np.diff(row["nbest_score"]) <= 0).all()
    assert row["truncated"] == (len(tokens_of(question).ids) > 6)


def without_a_graph(model, pairs):
    """`predict` in one batch, without the time that tracing takes."""
    columns = (tf.constant([encoded(text) for text in column]) for column in zip(*pairs))
    values = {name: value.numpy() for name, value in model.answer(*columns).items()}
    return [{name: value[i] for name, value in values.items()} for i in range(len(pairs))]


# --- by brute force --------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_the_best_of_all_spans(model, rows, number):
    (question, context), row = ROWS[number], rows[number]
    check_row(row, question, context)
    expected = read(model, question, context)
    tokens = tokens_of(context)
    kept = expected.spans[:5]
    scores = [span.probability for span in kept] + [0.0] * (5 - len(kept))
    np.testing.assert_allclose(row["nbest_score"], scores, atol=2e-5)
    for place, span in enumerate(kept):
        assert row["nbest_start"][place] == tokens.start[span.first]
        assert row["nbest_end"][place] == tokens.end[span.last]
    assert not row["nbest_answer"][len(kept) :].any()
    best = expected.spans[0]
    assert row["null_score"] == pytest.approx(expected.null - best.score, abs=1e-4)
    # Without a threshold there always is an answer.
    assert row["has_answer"]
    assert row["score"] == pytest.approx(best.probability, abs=2e-5)
    assert row["start_byte"] == tokens.start_byte[best.first]
    assert row["end_byte"] == tokens.end_byte[best.last]
    assert row["answer"] == encoded(context)[row["start_byte"] : row["end_byte"]]


def test_the_threshold_of_no_answer(rows):
    ordered = sorted(float(row["null_score"]) for row in rows)
    threshold = (ordered[2] + ordered[3]) / 2
    strict = small(max_answer_length=4, null_threshold=threshold)
    found = without_a_graph(strict, ROWS)
    assert sum(bool(row["has_answer"]) for row in found) == 3
    for row, without, (question, context) in zip(found, rows, ROWS):
        check_row(row, question, context)
        assert row["has_answer"] == (without["null_score"] <= threshold)
        np.testing.assert_allclose(row["null_score"], without["null_score"], atol=1e-4)
        np.testing.assert_array_equal(row["nbest_answer"], without["nbest_answer"])
        if row["has_answer"]:
            assert row["answer"] == without["answer"]
        else:
            assert row["answer"] == b"" and row["start"] == row["end"] == 0
            expected = read(strict, question, context).null_probability
            assert row["score"] == pytest.approx(expected, abs=2e-5)


def test_a_threshold_that_is_found_later_counts(rows):
    """It is found on validation data by a model that has answered already."""
    model = small(max_answer_length=4)
    x = ([ROWS[0][0]], [ROWS[0][1]])
    assert model.predict(x)[0]["has_answer"]
    model.null_threshold = float(rows[0]["null_score"]) - 1.0
    model.nbest = 2
    found = model.predict(x)[0]
    assert not found["has_answer"] and found["nbest_score"].shape == (2,)
    np.testing.assert_allclose(found["nbest_score"], rows[0]["nbest_score"][:2], atol=1e-5)


# --- texts of all kinds ----------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [None, 5.0])
def test_a_context_without_tokens_has_no_answer(threshold):
    contexts = ["", "  \t\n ", "\u200b\u0301", b"\xff\xfe"]
    pairs = [(question, context) for question in ("film?", "") for context in contexts]
    model = small(max_answer_length=4, null_threshold=threshold)
    for row, pair in zip(without_a_graph(model, pairs), pairs, strict=True):
        check_row(row, *pair)
        assert not row["has_answer"] and row["answer"] == b""
        assert row["null_score"] == 1e4 and row["score"] == pytest.approx(1.0)
        assert not row["nbest_score"].any() and not row["nbest_answer"].any()


def test_every_pair_of_awkward_texts(model):
    pairs = [(question, context) for question in TEXTS for context in TEXTS]
    rows = model.predict(([q for q, _ in pairs], [c for _, c in pairs]))
    assert len(rows) == len(pairs)
    for row, (question, context) in zip(rows, pairs):
        check_row(row, question, context)
        assert row["has_answer"] == bool(tokens_of(context).ids)


@settings(max_examples=20)
@given(pairs=st.lists(st.tuples(awkward_texts, awkward_texts), max_size=5))
def test_random_texts(model, pairs):
    rows = model.predict(([q for q, _ in pairs], [c for _, c in pairs]))
    assert len(rows) == len(pairs)
    for row, (question, context) in zip(rows, pairs):
        check_row(row, question, context)
        assert row["has_answer"] == bool(tokens_of(context).ids)


def test_rows_do_not_influence_each_other(model, rows):
    for row, (question, context) in zip(rows, ROWS):
        same_row(model.predict(([question], [context]))[0], row)


def test_lone_surrogates_keep_their_places(model):
    """JSON can escape them; Python counts one code point for each, UTF-8 cannot hold them."""
    whole, broken = "a \ufffd\ufffd good film", "a \ud800\udfff good film"
    expected, found = model.predict((["a \ud800"] * 2, [whole, broken]))
    same_row(found, expected)
    check_row(expected, "a", whole)


@pytest.mark.slow
def test_a_million_characters_without_a_space():
    """Full stops are a token each; a word of a million letters is one."""
    encoder = Bert(len(VOCABULARY), 8, 1, 2, 8, 512, initializer_range=0.5)
    model = QuestionAnswerer(encoder, TOKENIZER, 512, 32, max_question_length=8)
    contexts = ["." * 999_999 + "!", "x" * 1_000_000]
    dots, word = model.predict((["film"] * 2, contexts))
    for row, context in zip((dots, word), contexts):
        check_place(context, row["answer"], int(row["start"]), int(row["end"]))
        assert row["has_answer"] and row["answer"]
    assert (word["start"], word["end"]) == (0, 1_000_000)
    assert word["nbest_score"][1] == 0.0  # there is but one span


# --- for people ------------------------------------------------------------------------------


def test_answers_for_people(model, rows):
    found = model.answers({"question": ["a film?", "film"], "context": [LONG, ""]})
    first, row = found[0], rows[0]
    assert first["answer"] == row["answer"].decode() and first["has_answer"] is True
    assert (first["start"], first["end"]) == (row["start"], row["end"])
    assert first["score"] == pytest.approx(row["score"], abs=1e-6)
    assert [one["answer"] for one in first["nbest"]] == [a.decode() for a in row["nbest_answer"]]
    assert [sorted(one) for one in first["nbest"]] == [["answer", "end", "score", "start"]] * 5
    second = found[1]
    assert second["has_answer"] is False and second["nbest"] == [] and second["answer"] == ""
    assert model.answers(([], [])) == []


@pytest.mark.parametrize("number", [0, 3, 5])
def test_boundaries_are_softmaxes_over_the_tokens_of_the_text(model, rows, number):
    question, context = (decoded(text) for text in ROWS[number])
    found = model.boundaries(question, context)
    tokens = tokens_of(context)
    assert found.tokens == [VOCABULARY.tokens[i] for i in tokens.ids]
    logits = np.zeros((len(tokens.ids), 2))
    for window in window_logits(model, question, context):
        for cell, position in enumerate(window.positions):
            if position in window.owned:
                logits[position] = window.logits[cell]
    np.testing.assert_allclose(found.start, reference.softmax(logits[:, 0]), atol=2e-5)
    np.testing.assert_allclose(found.end, reference.softmax(logits[:, 1]), atol=2e-5)
    first, last = found.span
    assert tokens.start[first] == rows[number]["start"]
    assert tokens.end[last] == rows[number]["end"]


def test_boundaries_without_tokens(model):
    found = model.boundaries("film", " ")
    assert found.tokens == [] and found.span is None
    assert found.start.shape == found.end.shape == (0,)


# --- training --------------------------------------------------------------------------------

TRAIN = QuestionExamples(
    [str(i) for i in range(4)],
    ["what good", "what bad", "what very", "what x"],
    ["the film is a b", "a b is very bad", "goodness the a", "the a b is"],
    [[Answer("film", 4)], [Answer("very bad", 7)], [Answer("goodness", 0)], []],
    [""] * 4,
    "here",
    [""] * 4,
)


def test_the_loss_of_evaluate_is_that_of_the_windows():
    model = small()
    model.compile(run_eagerly=True)
    found = model.evaluate(TRAIN, TRAIN.answers, verbose=0, return_dict=True)
    # One window a question here; -log p(start) - log p(end), of [CLS] where there is no answer.
    losses = []
    for question, context, answers in zip(TRAIN.questions, TRAIN.contexts, TRAIN.answers):
        asked, tokens = tokens_of(question).ids, tokens_of(context)
        ids = [VOCABULARY.cls_id, *asked, VOCABULARY.sep_id, *tokens.ids, VOCABULARY.sep_id]
        segments = [0] * (len(asked) + 2) + [1] * (len(tokens.ids) + 1)
        inputs = {"token_ids": np.array([ids]), "segment_ids": np.array([segments])}
        logits = np.asarray(model(inputs))[0].astype("float64")
        first = last = 0
        if answers:
            begin = answers[0].start
            first = len(asked) + 2 + tokens.start.index(begin)
            last = len(asked) + 2 + tokens.end.index(begin + len(answers[0].text))
        log_p = logits - np.log(np.exp(logits).sum(axis=0))
        losses.append(-log_p[first, 0] - log_p[last, 1])
    assert found["loss"] == pytest.approx(np.mean(losses), rel=1e-4)


@pytest.mark.slow
def test_it_learns_what_it_is_shown(tmp_path):
    model = small(null_threshold=0.0)
    model.compile(keras.optimizers.Adam(0.01))
    x = (TRAIN.questions * 40, TRAIN.contexts * 40)
    history = model.fit(x, TRAIN.answers * 40, batch_size=8, epochs=4, verbose=0).history
    assert history["loss"][-1] < 0.1 * history["loss"][0]
    found = model.answers(TRAIN)
    for row, answers in zip(found, TRAIN.answers):
        assert row["has_answer"] is bool(answers)
        if answers:
            assert (row["answer"], row["start"]) == (answers[0].text, answers[0].start)
    # The same after saving the whole of it, optimizer and all.
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    assert again.get_config() == model.get_config() and again.null_threshold == 0.0
    assert int(again.optimizer.iterations) == int(model.optimizer.iterations)
    rows = without_a_graph(again, list(zip(TRAIN.questions, TRAIN.contexts)))
    assert [row["answer"].decode() for row in rows] == [row["answer"] for row in found]


# --- construction, saving and loading --------------------------------------------------------


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
def test_saved_and_loaded(tmp_path, format):
    settings = {"max_answer_length": 7, "nbest": 3, "null_threshold": -0.25, "stride": 5}
    model = small(**settings)
    folder = model.save_pretrained(tmp_path / "saved", format=format)
    again = QuestionAnswerer.from_pretrained(folder)
    assert {key: getattr(again, key) for key in settings} == settings
    if format == "kbert":
        assert again.get_config() == model.get_config()
    else:  # which knows nothing of windows: folders of others have the usual ones
        config = json.loads((folder / "config.json").read_text())
        del config["kbert"]
        (folder / "config.json").write_text(json.dumps(config))
        usual = QuestionAnswerer.from_pretrained(folder)
        positions = usual.encoder.max_sequence_length
        found = (usual.max_sequence_length, usual.stride, usual.max_question_length)
        assert found == (positions, positions // 3, positions // 6)
    for one, other in zip(again.weights, model.weights, strict=True):
        if "pooler" not in one.path:  # Hugging Face keeps none beside a head over all tokens
            np.testing.assert_array_equal(one, other)
    row, other = (without_a_graph(one, [("a film?", LONG)])[0] for one in (model, again))
    same_row(other, row)


def test_a_new_head_on_an_encoder(tmp_path):
    folder = small_encoder().save_pretrained(tmp_path / "encoder")
    (folder / "vocabulary.txt").write_text("".join(f"{t}\n" for t in VOCABULARY.tokens))
    model = QuestionAnswerer.from_pretrained(
        folder, stride=4, max_question_length=8, encoder_dropout=0.3, dtype="mixed_bfloat16"
    )
    assert model.max_sequence_length == 32  # the encoder has no more positions
    assert model.encoder.dropout == 0.3 and model.encoder.dtype_policy.name == "mixed_bfloat16"
    assert model.span_head.kernel.dtype == "float32"
    assert not np.asarray(model.span_head.bias).any()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"max_answer_length": 0}, "`max_answer_length` must be at least 1. Received: .*=0"),
        ({"nbest": 0}, "`nbest` must be at least 1. Received: nbest=0"),
        ({"stride": -1}, "`stride` must not be negative. Received: stride=-1"),
        (
            {"stride": 15},
            r"`max_sequence_length` must be at least 25: the longest question \(6\), .*"
            "max_sequence_length=24, stride=15",
        ),
        (
            {"max_sequence_length": 33},
            r"`max_sequence_length` must be a whole .* 32\], the encoder's positions. Received: "
            "max_sequence_length=33",
        ),
        ({"max_question_length": 0}, "`max_question_length` must be at least 1."),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        small(**arguments)


def test_a_tokenizer_with_more_tokens_than_the_encoder():
    message = "`tokenizer` must not have more tokens than the encoder has embeddings."
    with pytest.raises(ValueError, match=message):
        QuestionAnswerer(Bert(20, 8, 1, 2, 8, 32), TOKENIZER, 24, 4, 6)


def test_defaults_are_those_of_the_paper():
    model = QuestionAnswerer(Bert(len(VOCABULARY), 8, 1, 2, 8, 384), TOKENIZER)
    found = (model.max_sequence_length, model.stride, model.max_question_length)
    # run_squad.py: 384, a question of 64, answers of 30; the overlap as in Hugging Face's example.
    assert found == (384, 128, 64) and model.max_answer_length == 30
    assert model.name == "question_answerer" and model.null_threshold is None
    assert math.isclose(model.encoder.dropout, 0.1)


def test_no_rows(model):
    assert model.predict(([], [])) == model.predict({"question": [], "context": []}) == []


def test_ready_token_ids_go_through_keras_as_they_are(model):
    inputs = {"token_ids": np.array([[2, 7, 8, 3]]), "segment_ids": np.zeros((1, 4), int)}
    found = model.predict(inputs, verbose=0)
    np.testing.assert_allclose(found, model(inputs), atol=1e-5)
