"""Tags by a table written by hand, the likeliest by trying all, entities by a plain loop."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from kbert.text.sequences.entities import (
    best_path,
    entity_types,
    find_entities,
    split_tag,
    tag_rules,
    unreachable_tags,
)
from tests.text import tag_reference as reference

BIO = ("O", "B-X", "I-X", "B-Y", "I-Y")
IOBES = ("O", "B-X", "I-X", "E-X", "S-X", "B-Y", "E-Y")
BARE = ("B", "I", "O")
TAG_SETS = [BIO, IOBES, BARE]

# Written by hand: the first line is what may begin a row, then what may follow each tag in turn,
# and the last line which tags may end a row.
TABLES = {
    BIO: """
        1 1 0 1 0
        1 1 0 1 0
        1 1 1 1 0
        1 1 1 1 0
        1 1 0 1 1
        1 1 0 1 1
        1 1 1 1 1
    """,
    IOBES: """
        1 1 0 0 1 1 0
        1 1 0 0 1 1 0
        0 0 1 1 0 0 0
        0 0 1 1 0 0 0
        1 1 0 0 1 1 0
        1 1 0 0 1 1 0
        0 0 0 0 0 0 1
        1 1 0 0 1 1 0
        1 0 0 1 1 0 1
    """,
    BARE: """
        1 0 1
        1 1 1
        1 1 1
        1 0 1
        1 1 1
    """,
}


def random_probabilities(shape: tuple[int, ...], seed: int) -> np.ndarray:
    draw = np.random.default_rng(seed)
    return draw.dirichlet(np.full(shape[-1], 0.5), shape[:-1]).astype("float32") + 1e-6


@functools.cache
def graph_of(names: tuple[str, ...]):
    """The path and its entities, as one graph for all sizes."""
    rules = tag_rules(names)

    def both(scores: tf.Tensor, lengths: tf.Tensor) -> tuple:
        path = best_path(scores, lengths, rules)
        return path, find_entities(path, tf.exp(scores), lengths, names)

    specs = [tf.TensorSpec((None, None, len(names))), tf.TensorSpec((None,), tf.int32)]
    return tf.function(both, input_signature=specs, autograph=False)


def found_path(probabilities: np.ndarray, lengths: list[int], names: tuple[str, ...]) -> np.ndarray:
    return graph_of(names)(np.log(probabilities), np.array(lengths, "int32"))[0].numpy()


def test_tags_in_two_parts() -> None:
    assert split_tag("B-LOC") == ("B", "LOC") and split_tag("I-work-of-art") == (
        "I",
        "work-of-art",
    )
    assert split_tag("B") == ("B", "") and split_tag("O") == ("O", "")
    assert entity_types(["O", "I-B", "B-A", "B-B", "I-A"]) == ["B", "A"]
    assert entity_types(BARE) == [""] and entity_types(["O"]) == []


@pytest.mark.parametrize("names", TAG_SETS)
def test_rules_by_hand(names: tuple[str, ...]) -> None:
    table = np.array([line.split() for line in TABLES[names].split("\n") if line.strip()]) == "1"
    rules = tag_rules(names)
    np.testing.assert_array_equal(rules.begin, table[0])
    np.testing.assert_array_equal(rules.follow, table[1:-1])
    np.testing.assert_array_equal(rules.end, table[-1])


@pytest.mark.parametrize("names", TAG_SETS)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=4), st.integers(0, 10**6))
def test_the_likeliest_of_all_sequences(
    names: tuple[str, ...], lengths: list[int], seed: int
) -> None:
    probabilities = random_probabilities((len(lengths), max(lengths), len(names)), seed)
    path = found_path(probabilities, lengths, names)
    assert path.shape == (len(lengths), max(lengths)) and path.dtype == np.int32
    for row, length in enumerate(lengths):
        scores = np.log(probabilities[row, :length].astype("float64"))
        best = reference.best_tags(scores, names)
        found = path[row, :length]
        # Two sequences may be as likely to the last bit.
        assert reference.spelled_right([names[i] for i in found])
        cells = np.arange(length)
        expected = scores[cells, list(best)].sum()
        assert scores[cells, found].sum() == pytest.approx(expected, abs=1e-4)
        assert not path[row, length:].any()


def test_a_row_is_as_it_is_alone() -> None:
    """Also the one that breaks no rule, beside another that does."""
    probabilities = random_probabilities((40, 6, 5), 1)
    probabilities[0] = [0.6, 0.1, 0.1, 0.1, 0.1]  # "O" throughout: nothing to search
    # Nearly a tie at the end, less apart than the sum of the row can tell.
    probabilities[1] = [[1e-9, 1e-9, 1e-9, 0.4, 0.3]] * 5 + [[0.5, 0.50000006, 1e-9, 1e-9, 1e-9]]
    lengths = [6, 6, *np.random.default_rng(2).integers(0, 7, 38).tolist()]
    together = found_path(probabilities, lengths, BIO)
    assert together[1].tolist() == [3, 3, 3, 3, 3, 1]
    for row, length in enumerate(lengths):
        alone = found_path(probabilities[row : row + 1, : max(length, 1)], [length], BIO)
        np.testing.assert_array_equal(together[row, :length], alone[0, :length])


@pytest.mark.parametrize("names", [BIO, IOBES])
def test_a_long_text_is_decoded_as_in_double_precision(names: tuple[str, ...]) -> None:
    words = 20_000
    draw = np.random.default_rng(3)
    # All tags nearly alike: less apart than a sum over the whole text can tell.
    probabilities = draw.uniform(0.2, 0.2001, (1, words, len(names))).astype("float32")

    @tf.function(autograph=False)
    def graph(scores: tf.Tensor) -> tf.Tensor:
        return best_path(scores, tf.constant([words]), tag_rules(names))

    found = graph(tf.constant(np.log(probabilities)))[0].numpy()
    scores = np.log(probabilities[0]).astype("float64")
    assert reference.spelled_right([names[i] for i in found])
    got = scores[np.arange(words), found].sum()
    # A single sum of them in single precision is known to some thousandths, each step's to 1e-7.
    assert got == pytest.approx(reference.best_score(scores, names), abs=1e-2)


@pytest.mark.parametrize("rows, words", [(0, 0), (3, 0), (0, 4)])
@pytest.mark.parametrize("in_graph", [False, True])
def test_nothing_to_tag(rows: int, words: int, in_graph: bool) -> None:
    both = graph_of(BIO) if in_graph else graph_of(BIO).python_function
    path, entities = both(tf.zeros((rows, words, 5)), tf.zeros((rows,), tf.int32))
    assert path.shape == (rows, words)
    for column in entities:
        assert column.nrows() == rows and column.values.shape == (0,)


@pytest.mark.parametrize("names", TAG_SETS)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=4), st.integers(0, 10**6))
def test_entities_by_a_plain_loop(names: tuple[str, ...], lengths: list[int], seed: int) -> None:
    probabilities = random_probabilities((len(lengths), max(lengths), len(names)), seed)
    path, found = graph_of(names)(np.log(probabilities), np.array(lengths, "int32"))
    path = path.numpy()
    types = entity_types(names)
    for row, length in enumerate(lengths):
        tags = path[row, :length].tolist()
        expected = reference.entities([names[i] for i in tags])
        columns = [column[row].numpy().tolist() for column in found[:3]]
        assert [(types[k], a, b) for k, a, b in zip(*columns)] == expected
        for score, (_, first, last) in zip(found.score[row].numpy(), expected, strict=True):
            of_words = [probabilities[row, word, tags[word]] for word in range(first, last + 1)]
            assert score == pytest.approx(np.mean(of_words), rel=1e-5)


def test_entities_by_hand() -> None:
    tags = ["B-X", "I-X", "B-X", "O", "B-Y", "I-Y"]
    path = tf.constant([[BIO.index(tag) for tag in tags], [1, 0, 0, 0, 0, 0]])
    probabilities = np.full((2, 6, 5), 0.1, "float32")
    for word, share in enumerate([0.5, 0.7, 0.9, 0.8, 0.4, 0.2]):
        probabilities[0, word, BIO.index(tags[word])] = share
    found = find_entities(path, tf.constant(probabilities), tf.constant([6, 1]), BIO)
    assert found.kind.to_list() == [[0, 0, 1], [0]]
    assert found.first.to_list() == [[0, 2, 4], [0]] and found.last.to_list() == [[1, 2, 5], [0]]
    np.testing.assert_allclose(found.score[0], [0.6, 0.9, 0.3], rtol=1e-6)
    assert [column.dtype for column in found] == [tf.int32] * 3 + [tf.float32]


def test_an_entity_that_begins_with_i() -> None:
    """IOB1: I- begins one behind O and behind another type; B- behind the same type."""
    tags = ["I-X", "I-X", "B-X", "O", "I-Y", "I-X", "O"]
    probabilities = np.full((1, 7, 5), 0.001, "float32")
    for word, tag in enumerate(tags):
        probabilities[0, word, BIO.index(tag)] = 0.9
    lengths = tf.constant([7])
    path = best_path(tf.math.log(probabilities), lengths, tag_rules(BIO, strict=False))
    assert [BIO[tag] for tag in path.numpy()[0]] == tags
    found = find_entities(path, tf.constant(probabilities), lengths, BIO)
    assert found.first.to_list() == [[0, 2, 4, 5]] and found.last.to_list() == [[1, 2, 4, 5]]
    assert found.kind.to_list() == [[0, 0, 1, 0]]
    np.testing.assert_allclose(found.score[0], [0.9] * 4, rtol=1e-5)
    strict = best_path(tf.math.log(probabilities), lengths, tag_rules(BIO))
    assert [BIO[tag] for tag in strict.numpy()[0]] != tags
    assert unreachable_tags(["O", "I-X"]) == ["I-X"]
    assert unreachable_tags(["O", "I-X"], strict=False) == []


def test_only_outside() -> None:
    path = found_path(np.full((1, 3, 1), 1.0, "float32"), [3], ("O",))
    assert path.tolist() == [[0, 0, 0]]
    found = find_entities(tf.constant(path), tf.ones((1, 3, 1)), tf.constant([3]), ("O",))
    assert found.first.to_list() == [[]]


def test_tags_that_can_stand_nowhere():
    for tags in TAG_SETS:
        assert unreachable_tags(tags) == []
    assert unreachable_tags(["O", "I-X", "B-Y", "I-Y"]) == ["I-X"]
    # With E- or S- an entity must be closed; Y never is.
    assert unreachable_tags(["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y"]) == ["B-Y", "I-Y"]
