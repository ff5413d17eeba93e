"""Which words are chosen: by hand, and beside Model Garden's loops."""

import random
from collections import Counter
from functools import cache

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.masking import chosen_words
from kbert.text.sequences.stateless_random import row_seeds


@cache
def graph_of(ngram):
    """`chosen_words` for any batch."""
    rows, row = tf.TensorSpec((None, None), tf.bool), tf.TensorSpec((None,), tf.int32)
    return tf.function(
        lambda may, resumes, budget, seeds: chosen_words(may, resumes, budget, ngram, seeds),
        autograph=False,
        input_signature=[rows, rows, row, tf.TensorSpec((None,), tf.int64)],
    )


def choose(may_be_chosen, continues, budget, ngram, seeds):
    return [part.numpy() for part in graph_of(ngram)(may_be_chosen, continues, budget, seeds)]


def words_of(may_be_chosen, continues):
    """Begin and end of each word of a row, token by token."""
    words = []
    for i, (may, resumes) in enumerate(zip(may_be_chosen, continues)):
        if may and resumes and words and words[-1][1] == i:
            words[-1][1] = i + 1
        elif may:
            words.append([i, i + 1])
    return [tuple(word) for word in words]


def units_of(chosen, unit):
    """Begin and end of each chosen run of a row."""
    return {
        (int(b), int(np.flatnonzero(chosen & (unit == b)).max()) + 1) for b in set(unit[chosen])
    }


def test_by_hand():
    """`[CLS] a ##b c ##d ##e [SEP] f [SEP]`: words of 2, 3 and 1 tokens."""
    may = [[False, True, True, True, True, True, False, True, False]]
    resumes = [[False, False, True, False, True, True, False, False, False]]
    two, three, one = (1, 3), (3, 6), (7, 8)
    # What fits into each budget, whatever comes first, and cannot be left out.
    expected = {
        0: [set()],
        1: [{one}],
        2: [{two}, {one}],
        3: [{three}, {two, one}],
        4: [{three, one}, {two, one}],
        5: [{two, three}, {two, one}, {three, one}],
        6: [{two, three, one}],
    }
    for budget, possible in expected.items():
        rows = [np.repeat(row, 60, axis=0) for row in (may, resumes)]
        found = choose(*rows, [budget] * 60, 1, row_seeds(budget, count=60))
        seen = [units_of(*row) for row in zip(*found)]
        assert all(units in possible for units in seen)
        assert all(units in seen for units in possible)


def test_runs_of_words_by_hand():
    """Three words of one token and a budget of three: a first draw of 3, of weight 2/11, takes all.

    The weights of 1, 2 and 3 words are 1, 1/2 and 1/3: 6/11, 3/11, 2/11. No other way makes one
    run of all three; limits of five standard deviations.
    """
    count = 4000
    may = np.tile([False, True, True, True, False], (count, 1))
    chosen, unit = choose(may, ~may, [3] * count, 3, row_seeds(1, count=count))
    assert (chosen == may).all()
    sizes = Counter(len(units_of(c, u)) for c, u in zip(chosen, unit))
    for runs, share in ((1, 2 / 11), (2, None), (3, None)):
        if share is not None:
            assert abs(sizes[runs] / count - share) < 5 * np.sqrt(share * (1 - share) / count)
        assert sizes[runs] > 0.1 * count


def test_a_run_does_not_cross_what_may_not_be_chosen():
    count = 500
    may = np.tile([False, True, True, False, True, True, False], (count, 1))
    chosen, unit = choose(may, may & False, [2] * count, 4, row_seeds(3, count=count))
    seen = {frozenset(units_of(c, u)) for c, u in zip(chosen, unit)}
    runs = {unit for units in seen for unit in units}
    assert runs == {(1, 2), (2, 3), (4, 5), (5, 6), (1, 3), (4, 6)}


@st.composite
def batches(draw):
    width = draw(st.integers(1, 14))
    bools = st.lists(st.booleans(), min_size=width, max_size=width)
    count = draw(st.integers(1, 4))
    may = draw(st.lists(bools, min_size=count, max_size=count))
    resumes = draw(st.lists(bools, min_size=count, max_size=count))
    budget = draw(st.lists(st.integers(0, 9), min_size=count, max_size=count))
    return may, resumes, budget, draw(st.integers(1, 4)), draw(st.integers(0, 2**31))


@given(batches())
def test_only_whole_words_and_never_too_many(batch):
    may, resumes, budget, ngram, seed = batch
    chosen, unit = choose(may, resumes, budget, ngram, row_seeds(seed, count=len(may)))
    for i in range(len(may)):
        words = words_of(may[i], resumes[i])
        begins = {begin: number for number, (begin, _) in enumerate(words)}
        ends = {end: number for number, (_, end) in enumerate(words)}
        covered = 0
        for begin, end in units_of(chosen[i], unit[i]):
            assert begin in begins and end in ends
            assert 1 <= ends[end] - begins[begin] + 1 <= ngram
            assert chosen[i][begin:end].all() and (unit[i][begin:end] == begin).all()
            covered += end - begin
        assert covered == chosen[i].sum() <= budget[i]
        # One more word would have been too many: else it had been taken.
        left = budget[i] - covered
        free = [e - b for b, e in words if not chosen[i][b:e].any()]
        assert all(length > left for length in free)


@pytest.mark.parity
@pytest.mark.parametrize("ngram", [1, 3])
def test_the_same_runs_as_model_garden_chooses(ngram):
    """Runs a row by their number of tokens; the limit is five standard deviations."""
    from official.nlp.data.create_pretraining_data import _Gram, _masking_ngrams

    count, width, budget = 6000, 60, 9
    draw = np.random.default_rng(4)
    may = np.ones((count, width), bool)
    may[:, [0, 30, 59]] = False
    resumes = (draw.random((count, width)) < 0.3) & may
    resumes[:, [1, 31]] = False
    chosen, unit = choose(may, resumes, [budget] * count, ngram, row_seeds(5, count=count))
    ours = np.zeros((count, budget + 1))
    theirs = np.zeros((count, budget + 1))
    random.seed(6)  # Model Garden draws lengths from the module
    generator = random.Random(7)
    for i in range(count):
        for begin, end in units_of(chosen[i], unit[i]):
            ours[i, end - begin] += 1
        grams = [_Gram(*word) for word in words_of(may[i], resumes[i])]
        for gram in _masking_ngrams(grams, ngram, budget, generator):
            theirs[i, gram.end - gram.begin] += 1
    deviation = np.sqrt((ours.var(axis=0) + theirs.var(axis=0)) / count)
    difference = abs(ours.mean(axis=0) - theirs.mean(axis=0))
    assert (difference <= 5 * deviation).all(), (difference, deviation)
    assert theirs.mean(axis=0)[1] > 2  # there is something to compare
