"""Beam search: words spelled by hand, all sequences of small vocabularies, and a plain reference.

The reference itself is held to all sequences here too. `tests.decoding.spelling` has the step
functions; they make every number wrong if state, tokens or slots are out of step.
"""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from kbert.decoding.search import beam_search
from tests.decoding import reference
from tests.decoding.searching import (
    END,
    LONGEST,
    PENALTIES,
    answers_of,
    check_answers,
    check_searches,
    expected,
    run,
)
from tests.decoding.spelling import (
    START,
    Speller,
    normalized,
    plain_step,
    random_tables,
    speaker_of,
    table_of,
)

# Token 0 is the end, written "."; the last letter follows where nothing is said.
LETTERS = ".abz"


def spelled(distributions, max_length, *, letters=LETTERS, table_length=6, **kwargs):
    """The words that one row gives, without their ends, and their scores."""
    table = table_of(distributions, letters, table_length)
    found, _ = run(table[None], np.array([max_length]), **kwargs)
    answers = answers_of(found)[0]
    words = ["".join(letters[token] for token in answer.tokens[:-1]) for answer in answers]
    return words, [answer.score for answer in answers]


# --- the reference ---------------------------------------------------------------------------


@pytest.mark.parametrize("vocabulary_size, max_length", [(3, 1), (3, 5), (4, 4), (5, 3)])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("holes", [0.0, 0.3])
def test_the_reference_with_a_wide_beam_is_brute_force(vocabulary_size, max_length, penalty, holes):
    table = random_tables(1, 1000, vocabulary_size, seed=max_length, holes=holes)[0]
    kwargs = {"end_id": END, "max_length": max_length, "penalty": PENALTIES[penalty][1]}
    for nbest in (1, 4):
        wide = max(nbest, reference.count_prefixes(vocabulary_size, max_length))
        search = reference.beam_search(speaker_of(table), beam_size=wide, nbest=nbest, **kwargs)
        every = reference.brute_force(
            speaker_of(table), vocabulary_size=vocabulary_size, nbest=nbest, **kwargs
        )
        assert search.answers == every or not every


# --- by hand ---------------------------------------------------------------------------------


def test_a_word_is_spelled():
    words = {"": {"a": 1.0}, "a": {"b": 1.0}, "ab": {"a": 1.0}, "aba": {".": 1.0}}
    assert spelled(words, 6, beam_size=1) == (["aba"], [0.0])
    assert spelled(words, 6, beam_size=3)[0] == ["aba"]


GARDEN_PATH = {
    # a is likelier than b, but nothing good follows: .6 * .35 < .4 * .9.
    "": {"a": 0.6, "b": 0.4},
    "a": {"a": 0.35, "b": 0.33, "z": 0.32},
    "b": {".": 0.9, "z": 0.1},
    "aa": {".": 1.0},
    "ab": {".": 1.0},
    "az": {".": 1.0},
    "bz": {".": 1.0},
}


def test_greedy_is_wrong_and_a_beam_is_right():
    words, scores = spelled(GARDEN_PATH, 4, beam_size=1)
    assert words == ["aa"]
    np.testing.assert_allclose(scores, [math.log(0.6 * 0.35)], rtol=1e-5)
    words, scores = spelled(GARDEN_PATH, 4, beam_size=2)
    assert words == ["b"]
    np.testing.assert_allclose(scores, [math.log(0.4 * 0.9)], rtol=1e-5)


def test_the_n_best_in_order():
    # .4 * .9 = .36, .6 * .35 = .21, .6 * .33 = .198, .6 * .32 = .192.
    words, scores = spelled(GARDEN_PATH, 4, beam_size=4, nbest=4)
    assert words == ["b", "aa", "ab", "az"]
    np.testing.assert_allclose(np.exp(scores), [0.36, 0.21, 0.198, 0.192], rtol=1e-5)


def test_only_an_end_among_the_k_best_is_an_answer():
    # With K = 1 the end is second at once, .4, and is passed by. What lives on comes to .6 * .55.
    words = {"": {"a": 0.6, ".": 0.4}, "a": {"a": 0.55, "b": 0.45}}
    words |= {"aa": {".": 1.0}, "ab": {".": 1.0}}
    found, scores = spelled(words, 4, beam_size=1)
    assert found == ["aa"]
    np.testing.assert_allclose(np.exp(scores), [0.33], rtol=1e-5)
    # With K = 2 it is among the first two, and better.
    found, scores = spelled(words, 4, beam_size=2)
    assert found == [""]
    np.testing.assert_allclose(np.exp(scores), [0.4], rtol=1e-5)


SHORT_OR_LONG = {
    # "" has probability .5, "aaa" .5 * .8 * 1 * 1 = .4, "ab" .1.
    "": {".": 0.5, "a": 0.5},
    "a": {"a": 0.8, "b": 0.2},
    "aa": {"a": 1.0},
    "aaa": {".": 1.0},
    "ab": {".": 1.0},
}


@pytest.mark.parametrize(
    "penalty, word, score",
    [
        ("none", "", math.log(0.5)),
        # ln .5 / 1 = -.693; ln .4 / (9/6)^.6 = -.718: not enough.
        ("gnmt", "", math.log(0.5)),
        # ln .4 / 4 = -.229 and ln .4 / 2 = -.458.
        ("power", "aaa", math.log(0.4) / 4),
        ("root", "aaa", math.log(0.4) / 2),
    ],
)
@pytest.mark.parametrize("beam_size", [1, 2, 5])
def test_length_penalties_by_hand(penalty, word, score, beam_size):
    # With one hypothesis, the first end must not stop the search while "aaa" can still win.
    words, scores = spelled(SHORT_OR_LONG, 5, beam_size=beam_size, penalty=penalty)
    if beam_size == 1 and penalty in ("none", "gnmt"):
        # One hypothesis: of two equal continuations the end may be missed.
        assert words[0] in ("", "aaa")
        return
    assert words == [word]
    np.testing.assert_allclose(scores, [score], rtol=1e-5)


@pytest.mark.parametrize(
    "patience, word",
    # 5 hypotheses: stopped after 1, 1, 2, 3 (2.5 rounded as C++ does) and 4 (3.5) answers.
    [(0.01, ""), (0.2, ""), (0.4, "a"), (0.5, "aa"), (0.7, "aaa"), (None, "aaa")],
)
def test_patience_stops_at_a_number_of_answers(patience, word):
    # The means of the pieces: ln .1, ln .09 / 2, ln .405 / 3 = -.301, ln .405 / 4 = -.226.
    words = {"": {".": 0.1, "a": 0.9}, "a": {".": 0.1, "a": 0.9}, "aa": {".": 0.5, "a": 0.5}}
    words["aaa"] = {".": 1.0}
    found, _ = spelled(words, 6, beam_size=5, penalty="power", patience=patience)
    assert found == [word]


@pytest.mark.parametrize("nbest", [1, 3])
@pytest.mark.parametrize("patience", [0.2, 0.4, 0.5])
def test_a_row_that_is_stopped_stays_as_it_is_among_others_that_go_on(patience, nbest):
    first = {"": {".": 0.1, "a": 0.9}, "a": {".": 0.1, "a": 0.9}, "aa": {".": 0.5, "a": 0.5}}
    stopped = table_of({**first, "aaa": {".": 1.0}}, ".#a", LONGEST - 1)
    # The others find nothing before their last token, and one row of 24 alone does not leave.
    resumes = table_of({"a" * n: {"a": 1.0} for n in range(LONGEST)}, ".#a", LONGEST - 1)
    tables = np.stack([stopped] + [resumes] * 23)
    options = {"beam_size": 5, "penalty": "power", "nbest": nbest, "patience": patience}
    alone, _ = run(tables[:1], np.array([6]), **options)
    together, _ = run(tables, np.full(24, 6), **options)
    check_answers(answers_of(together)[0], answers_of(alone)[0])


def test_min_length_counts_the_end():
    words = {"": {".": 0.9, "a": 0.1}, "a": {".": 0.9, "a": 0.1}, "aa": {".": 1.0}}
    found = [spelled(words, 5, beam_size=2, min_length=n)[0] for n in (1, 2, 3)]
    assert found == [[""], ["a"], ["aa"]]


def test_the_last_token_is_the_end():
    # "a" is certain for ever; the end has probability .01 at each place.
    words = {"a" * n: {".": 0.01, "a": 0.99} for n in range(6)}
    for max_length in (1, 2, 4):
        found, scores = spelled(words, max_length, beam_size=1)
        total = (max_length - 1) * math.log(0.99) + math.log(0.01)
        assert found == ["a" * (max_length - 1)]
        np.testing.assert_allclose(scores, [total], rtol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_row_that_can_never_end_ends_at_its_max_length(beam_size):
    tables = random_tables(3, 97, 4, seed=1)
    tables[:, :, END] = -math.inf
    tables = normalized(tables)
    max_lengths = [3, 1, 6]
    found, _ = run(tables, np.array(max_lengths), beam_size=beam_size)
    answers = answers_of(found)
    assert [len(row[0].tokens) for row in answers] == max_lengths
    check_searches(found, expected(tables, max_lengths, beam_size=beam_size))


@pytest.mark.parametrize("beam_size", [1, 3])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 1e38])
def test_a_model_that_gives_no_probabilities_ends_too(number, beam_size):
    tables, max_lengths = np.full((3, 97, 4), number, "float32"), np.array([3, 1, 6], "int32")
    found, step = run(tables, max_lengths, beam_size=beam_size)
    assert len(step.beams) <= 6
    assert (found.lengths.numpy()[:, 0] <= max_lengths).all()
    assert ((found.token_ids.numpy() >= 0) & (found.token_ids.numpy() < 4)).all()


def test_there_are_fewer_sequences_than_were_asked_for():
    # "", "a" and "b" are all; "z" cannot come.
    words = {"": {".": 0.5, "a": 0.3, "b": 0.2}, "a": {".": 1.0}, "b": {".": 1.0}}
    found, scores = spelled(words, 3, beam_size=6, nbest=6)
    assert found == ["", "a", "b"]
    np.testing.assert_allclose(np.exp(scores), [0.5, 0.3, 0.2], rtol=1e-5)


def test_ties():
    # All four continuations are equally likely everywhere.
    table = np.full((1, 1, 4), math.log(0.25), "float32")
    for beam_size, nbest in ((1, 1), (2, 2), (4, 4), (6, 5)):
        found, _ = run(table, np.array([3]), beam_size=beam_size, nbest=nbest)
        again, _ = run(table, np.array([3]), beam_size=beam_size, nbest=nbest)
        (answers,) = answers_of(found)
        assert answers_of(again) == [answers]
        assert len(answers) == nbest
        for answer in answers:
            total = len(answer.tokens) * math.log(0.25)
            assert math.isclose(answer.log_probability, total, rel_tol=1e-5)
    assert answers[0].tokens == (END,)


# --- all sequences ---------------------------------------------------------------------------


@pytest.mark.parametrize("vocabulary_size, max_length", [(3, 5), (4, 4), (4, 5), (5, 3), (5, 5)])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_a_wide_beam_is_brute_force(vocabulary_size, max_length, penalty):
    numbers = sum(vocabulary_size**length for length in range(max_length))
    tables = random_tables(2, numbers, vocabulary_size, seed=vocabulary_size + max_length)
    wide = reference.count_prefixes(vocabulary_size, max_length)
    nbest = min(wide, 7)
    limits = np.array([max_length, max_length - 1])
    found, _ = run(tables, limits, beam_size=wide, penalty=penalty, nbest=nbest)
    for table, limit, answers in zip(tables, limits, answers_of(found)):
        every = reference.brute_force(
            speaker_of(table),
            vocabulary_size=vocabulary_size,
            end_id=END,
            max_length=int(limit),
            penalty=PENALTIES[penalty][1],
            nbest=nbest,
        )
        check_answers(answers, every)


# --- random tables ---------------------------------------------------------------------------


@st.composite
def problems(draw):
    vocabulary_size = draw(st.integers(3, 6))
    beam_size = draw(st.integers(1, 6))
    max_lengths = draw(st.lists(st.integers(1, LONGEST - 1), min_size=1, max_size=4))
    tables = random_tables(
        len(max_lengths),
        97,
        vocabulary_size,
        draw(st.integers(0, 2**20)),
        draw(st.sampled_from([0.5, 1.0, 2.0])),
        draw(st.sampled_from([0.0, 0.0, 0.3])),
    )
    # Where the end is unlikely, hypotheses live long; where it is likely, they end at once.
    tables[:, :, END] += draw(st.sampled_from([0.0, -3.0, -1.0]))
    tables = normalized(tables)
    options = {
        "beam_size": beam_size,
        "penalty": draw(st.sampled_from(sorted(PENALTIES))),
        "nbest": draw(st.integers(1, beam_size)),
        "min_length": draw(st.integers(1, min(3, *max_lengths, 3))),
    }
    return tables, max_lengths, options


@settings(max_examples=10, derandomize=True)
@given(problems())
def test_a_row_does_not_depend_on_the_others(problem):
    tables, max_lengths, options = problem
    found, _ = run(tables, np.array(max_lengths), **options)
    together = answers_of(found)
    for row, max_length in enumerate(max_lengths):
        alone, _ = run(tables, np.array([max_length]), rows=np.array([row]), **options)
        check_answers(answers_of(alone)[0], together[row])


# --- the step function -----------------------------------------------------------------------


class Watchful(Speller):
    """Looks at what each call gets, and counts the rows."""

    def __init__(self, *args):
        super().__init__(*args)
        self.rows = []
        self.row_ids = []

    def __call__(self, tokens, time, slots, state):
        assert (tokens.dtype, slots.dtype, time.dtype) == (tf.int32, tf.int32, tf.int32)
        now, rows, beam = int(time), tokens.shape[0], tokens.shape[1]
        assert now == len(self.rows) and time.shape == ()
        assert beam == (1 if now == 0 else self.slots)
        assert slots.shape[:2] == (rows, beam) and slots.shape[2] > now
        passed = slots.numpy()
        assert (passed[:, :, now] == np.arange(beam)).all()
        assert ((passed[:, :, : now + 1] >= 0) & (passed[:, :, : now + 1] < self.slots)).all()
        assert (passed[:, :, 0] == 0).all()
        assert ((tokens.numpy() == START).all()) or now > 0
        assert state["row"].shape[0] == state["more"][0].shape[0] == rows
        self.rows.append(rows)
        self.row_ids.append(state["row"].numpy().tolist())
        return super().__call__(tokens, time, slots, state)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("penalty", ["none", "power"])
def test_finished_rows_are_not_paid_for(beam_size, penalty):
    tables = random_tables(6, 97, 5, seed=3)
    tables[:, :, END] = -4.0
    tables[3] = random_tables(1, 97, 5, seed=4, sharpness=0.1)
    tables[3, :, END] = 20.0  # ends at once, and as well as can be
    tables = normalized(tables)
    max_lengths = [2, 7, 4, 7, 1, 5]
    found, step = run(
        tables, np.array(max_lengths), beam_size=beam_size, penalty=penalty, speller=Watchful
    )
    searches = expected(tables, max_lengths, beam_size=beam_size, penalty=penalty)
    check_searches(found, searches)
    steps = [search.steps for search in searches]
    needed = [sum(s > time for s in steps) for time in range(max(steps))]
    assert len(step.rows) <= len(needed)
    assert all(seen <= most for seen, most in zip(step.rows, needed)), (step.row_ids, steps)
    # Rows never come back, nor change places.
    for before, after in zip(step.row_ids, step.row_ids[1:]):
        assert after == [row for row in before if row in after]


@settings(max_examples=20, derandomize=True)  # each runs a search step by step
@given(problems())
def test_random_tables_and_no_more_steps_than_the_reference_asks(problem):
    tables, max_lengths, options = problem
    found, step = run(tables, np.array(max_lengths), speller=Watchful, **options)
    searches = expected(tables, max_lengths, **options)
    check_searches(found, searches, options)
    if all(search.answers and not search.near for search in searches):
        assert sum(step.rows) <= sum(search.steps for search in searches)


def test_an_end_that_is_likeliest_at_once_stops_the_search():
    words = {"": {".": 0.9, "a": 0.1}}
    table = table_of(words, LETTERS, 6)
    found, step = run(table[None], np.array([7]), beam_size=1, speller=Watchful)
    assert answers_of(found)[0][0].tokens == (END,)
    assert step.rows == [1]


def test_no_state():
    # After start (1) comes 2, then 3, then the end.
    table = np.full((4, 4), -20.0, "float32")
    for token, after in ((1, 2), (2, 3), (3, END)):
        table[token, after] = -0.5
    found = beam_search(
        plain_step(table),
        (),
        2,
        beam_size=2,
        start_id=START,
        end_id=END,
        max_lengths=np.array([6, 6]),
    )
    assert [row[0].tokens for row in answers_of(found)] == [(2, 3, END)] * 2


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows):
    tables = random_tables(1, 97, 4, seed=2)
    max_lengths = np.full((rows,), 5)
    found, _ = run(tables, max_lengths, beam_size=3, nbest=2)
    assert tuple(found.token_ids.shape)[:2] == (rows, 2)
    check_searches(found, expected(tables, max_lengths.tolist(), beam_size=3, nbest=2))


# --- inside tf.function ----------------------------------------------------------------------


GRAPHS = [
    pytest.param({"beam_size": 1}, marks=pytest.mark.slow),
    {"beam_size": 3, "nbest": 3, "penalty": "gnmt"},
    {"beam_size": 5, "nbest": 2, "penalty": "power", "min_length": 2},
]


@pytest.mark.parametrize("options", GRAPHS, ids=str)
def test_in_a_graph_with_unknown_rows(options):
    beams = []

    @tf.function(
        input_signature=[tf.TensorSpec((None, 97, 5)), tf.TensorSpec((None,), tf.int32)],
        autograph=False,
    )
    def search(tables, max_lengths):
        found, step = run(tables, max_lengths, **options)
        beams.extend(step.beams)
        return found.token_ids, found.lengths, found.scores, found.log_probabilities

    for seed, max_lengths in enumerate(([4], [7, 2, 5, 3, 2], [3, 3, 6], [])):
        tables = random_tables(len(max_lengths), 97, 5, seed, holes=0.2)
        tables[:, :, END] -= seed
        tables = normalized(tables)
        limits = np.array(max_lengths, "int32")
        arrays = search(tf.constant(tables), tf.constant(limits))
        eager, _ = run(tables, limits, **options)
        found = type(eager)(*arrays)
        check_searches(found, expected(tables, max_lengths, **options), options)
        for own, other in zip(answers_of(found), answers_of(eager)):
            check_answers(own, other)
    assert set(beams) <= {1, options["beam_size"]}


@pytest.mark.parametrize("beam_size", [1, 3])
def test_in_a_graph_that_knows_all_lengths(beam_size):
    tables, max_lengths = random_tables(8, 97, 5, seed=1), [7, 2, 5, 3, 2, 4, 1, 6]

    @tf.function(autograph=False)
    def search():
        return run(tables, np.array(max_lengths, "int32"), beam_size=beam_size)[0]

    check_searches(search(), expected(tables, max_lengths, beam_size=beam_size))


def test_ties_are_broken_alike_in_a_graph():
    table = np.full((1, 1, 4), math.log(0.25), "float32")

    @tf.function(autograph=False)
    def search(max_lengths):
        found, _ = run(table, max_lengths, beam_size=3, nbest=3, rows=tf.zeros_like(max_lengths))
        return found.token_ids

    limits = tf.constant([3, 4], tf.int32)
    eager, _ = run(table, limits, beam_size=3, nbest=3, rows=tf.zeros_like(limits))
    np.testing.assert_array_equal(search(limits), eager.token_ids)


# --- what the caller got wrong ---------------------------------------------------------------


@pytest.mark.parametrize(
    "options, message",
    [
        ({"beam_size": 0}, "`beam_size` must be .*Received: .*0"),
        ({"beam_size": 2, "nbest": 0}, "`nbest` must be .*Received: .*0"),
        ({"beam_size": 2, "nbest": 3}, "`nbest` must be .*Received: .*3"),
        ({"beam_size": 2, "patience": 0.0}, "`patience` must be positive.*Received: .*0.0"),
    ],
)
def test_errors(options, message):
    with pytest.raises(ValueError, match=message):
        run(random_tables(1, 7, 3, 0), np.array([3]), **options)
