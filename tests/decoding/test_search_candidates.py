"""Searches over some tokens of the vocabulary, beside those over all with the others impossible."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.decoding.scores import shortlist_multiple
from kbert.decoding.search import best_sequences
from tests.decoding.searching import END, LONGEST, answers_of
from tests.decoding.spelling import START, Speller, random_tables

SIZE = 23
ALLOWED = [[2, 3, 5, 7, 11, 13, 22], [1, 3, 4], [9, 10, 11, 12]]  # of each row, beside the end


def tables(holes: float = 0.0) -> np.ndarray:
    """Logits of three rows, in which all but the allowed tokens are impossible."""
    found = random_tables(3, 40, SIZE, seed=3, holes=holes)
    for row, allowed in enumerate(ALLOWED):
        found[row][:, [i for i in range(1, SIZE) if i not in allowed]] = -np.inf
    return found


def searched(table: np.ndarray, beam_size: int, candidates: list[int] | None, **given):
    """The answers of a graph in which the number of candidates is not known."""

    def search(tokens: tf.Tensor) -> tuple[tf.Tensor, ...]:
        step = Speller(table, beam_size, LONGEST)

        def some(token_ids, time, slots, state):
            logits, state = step(token_ids, time, slots, state)
            return tf.gather(logits, tokens, axis=2), state

        chosen = {} if candidates is None else {"candidates": tokens}
        return best_sequences(
            step if candidates is None else some,
            step.state(tf.range(3)),
            3,
            beam_size,
            start_id=START,
            end_id=END,
            max_lengths=tf.constant([LONGEST, 4, 2]),
            **chosen,
            **given,
        )

    graph = tf.function(search, input_signature=[tf.TensorSpec((None,), tf.int32)])
    return answers_of(graph(tf.constant(candidates or [END])))


def filled(beam_size: int) -> list[int]:
    """The end token, all tokens that a row may have, and what fills them up."""
    tokens = [END, *sorted({token for row in ALLOWED for token in row})]
    return tokens + [8] * (-len(tokens) % shortlist_multiple(2 * beam_size))  # 8: no row may


@pytest.mark.parametrize("beam_size, given", [(1, {}), (2, {"nbest": 2}), (3, {"min_length": 3})])
@pytest.mark.parametrize("holes", [0.0, 0.5])
def test_the_same_as_over_all_tokens(beam_size, given, holes):
    table = tables(holes)
    wanted = searched(table, beam_size, None, **given)
    found = searched(table, beam_size, filled(beam_size), **given)
    assert [[a.tokens for a in row] for row in found] == [[a.tokens for a in r] for r in wanted]
    for one, other in zip(sum(found, []), sum(wanted, []), strict=True):
        assert one.score == pytest.approx(other.score, abs=1e-5)
        assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)
    assert any(len(answer.tokens) > 1 for row in found for answer in row)
