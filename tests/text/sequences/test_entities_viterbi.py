"""Tags found block by block, beside a search word by word in plain NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.entities import BLOCK, tag_rules, viterbi
from tests.few_examples import few_examples
from tests.text import tag_reference as reference

BIO = ("O", "B-X", "I-X", "B-Y", "I-Y")
IOBES = ("O", "B-X", "I-X", "E-X", "S-X", "B-Y", "E-Y")
BARE = ("B", "I", "O")


def random_scores(shape: tuple[int, ...], seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return np.log(draw.dirichlet(np.full(shape[-1], 0.3), shape[:-1]) + 1e-6).astype("float32")


def found(scores: np.ndarray, lengths: list[int], names: tuple[str, ...], block: int) -> np.ndarray:
    numbers = tf.constant(lengths, tf.int32)
    return viterbi(tf.constant(scores), numbers, tag_rules(names), block).numpy()


@pytest.mark.parametrize("names", [BIO, IOBES, BARE])
@few_examples(10)
@given(data=st.data())
def test_blocks_of_any_length_find_the_best(names: tuple[str, ...], data: st.DataObject) -> None:
    # The last tag of an IOBES text may need a word before it, so a text has two at least.
    lengths = data.draw(st.lists(st.integers(2, 30), min_size=1, max_size=4))
    block = data.draw(st.integers(1, 31))
    scores = random_scores((len(lengths), max(lengths), len(names)), data.draw(st.integers(0, 999)))
    paths = found(scores, lengths, names, block)
    for row, length, path in zip(scores, lengths, paths):
        tags = [names[i] for i in path[:length]]
        assert reference.spelled_right(tags)
        got = row[np.arange(length), path[:length]].astype("float64").sum()
        assert got == pytest.approx(reference.best_score(row[:length], names), abs=1e-4)
        assert (path[length:] == path[length - 1]).all()


@pytest.mark.parametrize("block", [1, 7, 64])
def test_a_row_does_not_depend_on_the_rows_beside_it(block: int) -> None:
    lengths = [5, 200, 63, 64, 65, 0, 1]
    draw = np.random.default_rng(5)
    # So nearly alike that every rounding shows.
    scores = np.log(draw.uniform(0.2, 0.20001, (len(lengths), 200, len(BIO)))).astype("float32")
    together = found(scores, lengths, BIO, block)
    for row, length, path in zip(scores, lengths, together):
        alone = found(row[None, : max(length, block)], [length], BIO, block)[0, :length]
        assert alone.tolist() == path[:length].tolist()


def test_a_text_of_a_block_is_searched_word_by_word() -> None:
    """Scores exactly alike, where only the order of operations decides."""
    scores = np.zeros((1, 3 * 64, len(BARE)), "float32")
    short = found(scores[:, :64], [64], BARE, 64)
    assert (found(scores, [64], BARE, 64)[:, :64] == short).all()


@pytest.mark.parametrize("words", [1, 60, 100 * BLOCK + 7])
def test_texts_of_some_blocks_in_a_graph(words: int) -> None:
    scores = random_scores((1, words, len(BIO)), 6)

    @tf.function(input_signature=[tf.TensorSpec((None, None, len(BIO)))])
    def graph(scores: tf.Tensor) -> tf.Tensor:
        return viterbi(scores, tf.shape(scores)[1:2], tag_rules(BIO))

    path = graph(tf.constant(scores)).numpy()[0]
    assert reference.spelled_right([BIO[i] for i in path])
    got = scores[0, np.arange(words), path].astype("float64").sum()
    assert got == pytest.approx(reference.best_score(scores[0], BIO), abs=1e-2)
