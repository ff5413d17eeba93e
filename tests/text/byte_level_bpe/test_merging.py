"""Merging by hand, and as published, with merges in any order and words of any length."""

import random
from collections.abc import Sequence

import pytest
import tensorflow as tf

from kbert.text.byte_level_bpe.merge_table import build_merge_table
from kbert.text.byte_level_bpe.merging import Merger
from kbert.text.vocabulary import byte_characters
from tests.text.byte_level_bpe_cases import trained, vocabulary_of

Merges = Sequence[tuple[str, str]]


def merged(merges: Merges, words: Sequence[str], traced: bool = True) -> list[list[str]]:
    """To trace takes longer than some steps for short words, one op after the other."""
    vocabulary = vocabulary_of(merges)
    merger = Merger(build_merge_table(vocabulary, merges))
    merge = tf.function(merger.merge, autograph=False) if traced else merger.merge
    ids = merge(tf.constant(words, tf.string)).to_list()
    return [[vocabulary.tokens[number] for number in row] for row in ids]


def published(merges: Merges, words: Sequence[str]) -> list[list[str]]:
    models = pytest.importorskip("tokenizers").models
    ids = {token: number for number, token in enumerate(vocabulary_of(merges).tokens)}
    model = models.BPE(ids, list(merges))
    spelled = ["".join(byte_characters()[byte] for byte in word.encode()) for word in words]
    return [[token.value for token in model.tokenize(word)] for word in spelled]


@pytest.mark.parametrize(
    ("merges", "word", "expected"),
    [
        ("a b|b c", "abc", "ab c"),
        ("b c|a b", "abc", "a bc"),
        ("b c|a bc|a b", "abcab", "abc ab"),
        ("a a", "aaaaa", "aa aa a"),
        ("a a|aa aa", "aaaaaaa", "aaaa aa a"),
        ("a b|b a", "ababa", "ab ab a"),
        ("a b", "xyz", "x y z"),
        # The longest token is not the first choice, and "abc" is never made of "a" and "bc".
        ("b c|a b|ab c", "abc", "a bc"),
        # The first merge makes an earlier one possible, before the second "ab" is merged.
        ("ab a|a b", "abab", "aba b"),
    ],
)
def test_merges_by_hand(merges: str, word: str, expected: str) -> None:
    pairs = [tuple(pair.split()) for pair in merges.split("|")]
    found = merged(pairs, ["x", word, word * 2], traced=False)
    assert found[:2] == [["x"], expected.split()]


def test_no_words_and_no_merges() -> None:
    assert merged([("a", "b")], []) == []
    assert merged([], ["ab"], traced=False) == [["a", "b"]]


def drawn_merges(draw: random.Random, letters: str, count: int, in_order: bool) -> Merges:
    """Random merges; in order, each token is made once and before it is part of a merge."""
    tokens, pairs = list(letters), {}
    while len(pairs) < count:
        left, right = draw.choice(tokens), draw.choice(tokens)
        if len(left + right) < 9 and (not in_order or left + right not in tokens):
            pairs[left, right] = None
            tokens.append(left + right)
    merges = list(pairs)
    if not in_order:
        draw.shuffle(merges)
    return merges


def hold_to_published(seed: int, in_order: bool) -> None:
    draw = random.Random(seed)
    letters = "abcd"[: draw.randint(1, 4)]
    count = draw.randint(1, 4 if len(letters) == 1 else 12)
    merges = drawn_merges(draw, letters, count, in_order)
    lengths = [*range(1, 12), 30, 101, 150, 400]  # the last three are long words
    words = ["".join(draw.choices(letters, k=length)) for length in lengths]
    assert merged(merges, words) == published(merges, words)


@pytest.mark.parametrize("seed", range(2))  # more in the slow test
@pytest.mark.parametrize("in_order", [True, False])
def test_random_merges_as_published(in_order: bool, seed: int) -> None:
    hold_to_published(seed, in_order)


@pytest.mark.slow
@pytest.mark.parametrize("in_order", [True, False])
def test_many_random_merges_as_published(in_order: bool) -> None:
    for seed in range(100, 160):
        hold_to_published(seed, in_order)


def test_long_words_of_a_trained_vocabulary_as_published() -> None:
    draw = random.Random(0)
    vocabulary, merges = trained()
    merge = tf.function(Merger(build_merge_table(vocabulary, merges)).merge, autograph=False)
    model = pytest.importorskip("tokenizers").models.BPE(
        {token: number for number, token in enumerate(vocabulary.tokens)}, merges
    )
    kinds = ("etaoinshrdlu", "a", "ab", "abcdefghijklmnopqrstuvwxyz", "den", "th")
    words = ["".join(draw.choices(kind, k=2000)) for kind in kinds] + ["the", "thethe" * 300]
    found = merge(tf.constant(words)).to_list()
    assert found == [[token.id for token in model.tokenize(word)] for word in words]


def test_a_word_of_a_hundred_thousand_letters_needs_few_steps() -> None:
    """A step for each rank would take several times the limit of a fast test."""
    draw = random.Random(0)
    word = "".join(draw.choices("etaoinshrdlu", k=100_000))
    vocabulary, merges = trained()
    merge = tf.function(Merger(build_merge_table(vocabulary, merges)).merge, autograph=False)
    tokens = merge(tf.constant([word])).values.numpy()
    assert "".join(vocabulary.tokens[number] for number in tokens) == word
