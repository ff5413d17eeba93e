"""Greedy search: words spelled by hand, and a plain Python reference over random tables."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

from kbert.decoding.search import best_sequences, greedy_search
from tests.decoding import reference
from tests.decoding.searching import END, LONGEST, answers_of, check_answers, check_searches
from tests.decoding.spelling import (
    START,
    Speller,
    normalized,
    plain_step,
    random_tables,
    speaker_of,
    table_of,
)
from tests.few_examples import few_examples

LETTERS = ".abz"


def run(tables, max_lengths, rows=None, speller=Speller):
    """What greedy search gives for rows of the tables, and the speller that it asked."""
    if rows is None:
        rows = ops.arange(ops.shape(max_lengths)[0], dtype="int32")
    step = speller(tables, 1, LONGEST)
    found = greedy_search(
        step,
        step.state(rows),
        ops.shape(rows)[0],
        start_id=START,
        end_id=END,
        max_lengths=max_lengths,
    )
    return found, step


def expected(tables, max_lengths):
    return [
        reference.greedy(speaker_of(table), end_id=END, max_length=max_length)
        for table, max_length in zip(tables, max_lengths)
    ]


def spelled(distributions, max_length):
    """The word that one row gives, without its end, and its log-probability."""
    found, _ = run(table_of(distributions, LETTERS, 6)[None], np.array([max_length]))
    (answer,) = answers_of(found)[0]
    assert answer.score == answer.log_probability
    return "".join(LETTERS[token] for token in answer.tokens[:-1]), answer.score


def test_the_likeliest_letter_is_taken_though_a_better_word_exists():
    # .6 * .35 = .21; "b" would have .4 * .9.
    words = {
        "": {"a": 0.6, "b": 0.4},
        "a": {"a": 0.35, "b": 0.33, "z": 0.32},
        "aa": {".": 1.0},
        "b": {".": 0.9, "z": 0.1},
    }
    word, score = spelled(words, 5)
    assert word == "aa"
    assert math.isclose(score, math.log(0.6 * 0.35), rel_tol=1e-5)


def test_an_end_that_is_likeliest_at_once():
    word, score = spelled({"": {".": 0.9, "a": 0.1}}, 5)
    assert word == ""
    assert math.isclose(score, math.log(0.9), rel_tol=1e-5)


def test_the_last_token_is_the_end():
    words = {"a" * n: {".": 0.01, "a": 0.99} for n in range(6)}
    for max_length in (1, 2, 4):
        word, score = spelled(words, max_length)
        assert word == "a" * (max_length - 1)
        total = (max_length - 1) * math.log(0.99) + math.log(0.01)
        assert math.isclose(score, total, rel_tol=1e-4)


def test_a_row_that_can_never_end_ends_at_its_max_length():
    tables = random_tables(3, 97, 4, seed=1)
    tables[:, :, END] = -math.inf
    tables = normalized(tables)
    found, _ = run(tables, np.array([3, 1, 6]))
    assert [len(row[0].tokens) for row in answers_of(found)] == [3, 1, 6]
    check_searches(found, expected(tables, [3, 1, 6]))


def test_a_tie_gives_one_of_the_equals():
    table = np.full((1, 1, 4), math.log(0.25), "float32")
    found, _ = run(table, np.array([3]))
    again, _ = run(table, np.array([3]))
    ((answer,),) = answers_of(found)
    assert answers_of(again) == [[answer]]
    assert math.isclose(answer.score, len(answer.tokens) * math.log(0.25), rel_tol=1e-5)


@st.composite
def problems(draw):
    max_lengths = draw(st.lists(st.integers(1, LONGEST - 1), min_size=1, max_size=4))
    size = draw(st.integers(3, 6))
    seed = draw(st.integers(0, 2**20))
    tables = random_tables(len(max_lengths), 97, size, seed, holes=draw(st.sampled_from([0, 0.2])))
    tables[:, :, END] += draw(st.sampled_from([0.0, -1.0, -3.0]))
    tables[:, :, size - 1] = np.maximum(tables[:, :, size - 1], -9.0)  # no place without a way on
    return normalized(tables), max_lengths


@few_examples(12, derandomize=True)
@given(problems())
def test_random_tables(problem):
    tables, max_lengths = problem
    found, _ = run(tables, np.array(max_lengths))
    check_searches(found, expected(tables, max_lengths))


@settings(max_examples=10, derandomize=True)
@given(problems())
def test_a_row_does_not_depend_on_the_others(problem):
    tables, max_lengths = problem
    together = answers_of(run(tables, np.array(max_lengths))[0])
    for row, max_length in enumerate(max_lengths):
        alone, _ = run(tables, np.array([max_length]), np.array([row]))
        check_answers(answers_of(alone)[0], together[row])


class Counting(Speller):
    """Counts the rows of each call."""

    def __init__(self, *args):
        super().__init__(*args)
        self.rows = []

    def __call__(self, tokens, time, slots, state):
        assert tokens.shape[1] == slots.shape[1] == 1
        assert (tokens.dtype, slots.dtype, time.dtype) == (tf.int32, tf.int32, tf.int32)
        assert (slots.numpy()[:, :, : int(time) + 1] == 0).all()
        self.rows.append(tokens.shape[0])
        return super().__call__(tokens, time, slots, state)


def test_finished_rows_are_not_paid_for():
    tables = random_tables(5, 97, 5, seed=3)
    tables[:, :, END] = -9.0
    tables[3, :, END] = 20.0  # ends at once
    tables = normalized(tables)
    max_lengths = [2, 7, 4, 7, 1]
    found, step = run(tables, np.array(max_lengths), speller=Counting)
    check_searches(found, expected(tables, max_lengths))
    # By hand: the rows that live at each time; 3 and 4 end at time 0, 0 at time 1, 2 at time 3.
    assert len(step.rows) <= 7
    assert all(seen <= most for seen, most in zip(step.rows, [5, 3, 2, 2, 1, 1, 1]))


def test_no_state():
    table = np.full((4, 4), -20.0, "float32")
    for token, after in ((1, 2), (2, 3), (3, END)):
        table[token, after] = -0.5
    limits = np.array([6, 6])
    found = greedy_search(
        plain_step(table), (), 2, start_id=START, end_id=END, max_lengths=limits
    )
    assert [row[0].tokens for row in answers_of(found)] == [(2, 3, END)] * 2


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows):
    tables = random_tables(1, 97, 4, seed=2)
    found, _ = run(tables, np.full((rows,), 5))
    assert tuple(found.token_ids.shape)[:2] == (rows, 1)
    check_searches(found, expected(tables, [5] * rows))


def test_in_a_graph_that_knows_all_lengths():
    tables, max_lengths = random_tables(8, 97, 5, seed=1), [7, 2, 5, 3, 2, 4, 1, 6]

    @tf.function(autograph=False)
    def search():
        return run(tables, np.array(max_lengths, "int32"))[0]

    check_searches(search(), expected(tables, max_lengths))


def test_in_a_graph_with_unknown_rows():
    beams = []

    @tf.function(
        input_signature=[tf.TensorSpec((None, 97, 5)), tf.TensorSpec((None,), tf.int32)],
        autograph=False,
    )
    def search(tables, max_lengths):
        found, step = run(tables, max_lengths)
        beams.extend(step.beams)
        return found.token_ids, found.lengths, found.scores, found.log_probabilities

    for seed, max_lengths in enumerate(([4], [7, 2, 5, 3, 2], [3, 3, 6], [])):
        tables = random_tables(len(max_lengths), 97, 5, seed)
        tables[:, :, END] -= seed
        tables = normalized(tables)
        limits = np.array(max_lengths, "int32")
        arrays = search(tf.constant(tables), tf.constant(limits))
        eager, _ = run(tables, limits)
        check_searches(type(eager)(*arrays), expected(tables, max_lengths))
    assert set(beams) == {1}


def test_one_hypothesis_has_the_same_limits_as_several():
    table = table_of({"": {".": 0.6, "a": 0.4}, "a": {".": 1.0}}, LETTERS, 6)[None]
    step = Speller(table, 1, LONGEST)
    ends = {"start_id": START, "end_id": END, "max_lengths": np.array([5])}
    lengths = []
    for more in ({}, {"min_length": 2}, {"length_penalty": None, "capacity": 5}):
        state = step.state(ops.arange(1))
        lengths.append(int(best_sequences(step, state, 1, 1, **ends, **more).lengths[0, 0]))
    assert lengths == [1, 2, 1]
