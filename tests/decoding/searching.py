"""Calls the searches of kbert with a speller, and compares what they find with the reference."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from keras import ops

from kbert.decoding.scores import length_penalty
from kbert.decoding.search import beam_search
from tests.decoding import reference
from tests.decoding.reference import Answer, Search
from tests.decoding.spelling import START, Speller, speaker_of

END = 0
LONGEST = 8
# name -> (kbert's, the reference's)
PENALTIES = {
    "none": (None, reference.no_penalty),
    "gnmt": (length_penalty("gnmt", 0.6), reference.gnmt_penalty(0.6)),
    "power": (length_penalty("power", 1.0), reference.power_penalty(1.0)),
    "root": (length_penalty("power", 0.5), reference.power_penalty(0.5)),
}


def run(
    tables: Any,
    max_lengths: Any,
    *,
    beam_size: int,
    penalty: str = "none",
    nbest: int = 1,
    min_length: int = 1,
    patience: float | None = None,
    speller: type[Speller] = Speller,
    rows: Any = None,
) -> tuple[Any, Speller]:
    """A beam search of kbert over rows of the tables: what it gives, and the speller it asked.

    `rows` holds the row ids (B,), by default one for each of the max_lengths.
    """
    if rows is None:
        rows = ops.arange(ops.shape(max_lengths)[0], dtype="int32")
    step = speller(tables, beam_size, LONGEST)
    found = beam_search(
        step,
        step.state(rows),
        ops.shape(rows)[0],
        beam_size=beam_size,
        start_id=START,
        end_id=END,
        max_lengths=max_lengths,
        length_penalty=PENALTIES[penalty][0],
        nbest=nbest,
        min_length=min_length,
        patience=patience,
    )
    return found, step


def expected(
    tables: np.ndarray,
    max_lengths: Sequence[int],
    *,
    beam_size: int,
    penalty: str = "none",
    nbest: int = 1,
    min_length: int = 1,
) -> list[Search]:
    """The reference's search of each row."""
    return [
        reference.beam_search(
            speaker_of(table),
            beam_size=beam_size,
            end_id=END,
            max_length=max_length,
            penalty=PENALTIES[penalty][1],
            nbest=nbest,
            min_length=min_length,
        )
        for table, max_length in zip(tables, max_lengths)
    ]


def answers_of(found: Any) -> list[list[Answer]]:
    """What a search of kbert gave, row by row, checked for its form."""
    ids, lengths, scores, totals = (
        np.asarray(ops.convert_to_numpy(array))
        for array in (found.token_ids, found.lengths, found.scores, found.log_probabilities)
    )
    assert (ids.dtype, lengths.dtype) == (np.int32, np.int32)
    assert (scores.dtype, totals.dtype) == (np.float32, np.float32)
    rows, nbest, longest = ids.shape
    assert lengths.shape == scores.shape == totals.shape == (rows, nbest)
    assert not np.isnan(scores).any() and not np.isnan(totals).any()
    assert (np.diff(np.where(scores == -math.inf, -1e30, scores), axis=1) <= 0).all()
    assert (lengths <= longest).all()
    answers: list[list[Answer]] = []
    for b in range(rows):
        answers.append([])
        for n, length in enumerate(lengths[b]):
            assert (ids[b, n, length:] == END).all()
            if scores[b, n] == -math.inf:  # there is no such hypothesis
                continue
            tokens = tuple(ids[b, n, :length].tolist())
            assert tokens[-1] == END and END not in tokens[:-1]
            answers[b].append(Answer(tokens, float(totals[b, n]), float(scores[b, n])))
        assert len({answer.tokens for answer in answers[b]}) == len(answers[b])
    return answers


def check_answers(found: list[Answer], wanted: list[Answer], hint: object = "") -> None:
    """The same sequences in the same order, and nearly the same numbers."""
    assert [answer.tokens for answer in found] == [answer.tokens for answer in wanted], hint
    for one, other in zip(found, wanted):
        assert math.isclose(one.score, other.score, rel_tol=1e-5, abs_tol=1e-5), hint
        near = math.isclose(one.log_probability, other.log_probability, rel_tol=1e-5, abs_tol=1e-5)
        assert near, hint


def check_searches(found: Any, searches: Sequence[Search], hint: object = "") -> None:
    """Every row's answers are the reference's, where no decision hung on a hair.

    A row without any sequence is asked nothing but its form.
    """
    answers = answers_of(found)
    assert len(answers) == len(searches)
    for own, search in zip(answers, searches):
        if not search.near and search.answers:
            check_answers(own, search.answers, hint)
