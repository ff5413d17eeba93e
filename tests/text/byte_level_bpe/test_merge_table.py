"""Merges as arrays, by hand, and errors by their text."""

import numpy as np
import pytest

from kbert.text.byte_level_bpe.merge_table import (
    FREE_BIT,
    NO_KEY,
    NO_RANK,
    RANK_SHIFT,
    TOKEN_BITS,
    TOKEN_MASK,
    MergeTable,
    build_merge_table,
)
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, byte_characters
from tests.text.byte_level_bpe_cases import trained, vocabulary_of

MERGES = [("a", "b"), ("ab", "c"), ("b", "c"), ("a", "bc")]
VOCABULARY = vocabulary_of(MERGES)


def ranks_of(table: MergeTable, left: int, right: np.ndarray) -> list[int]:
    keys = table.slot_keys[table.row_starts[left] + right]
    is_there = keys >> TOKEN_BITS & TOKEN_MASK == left
    return list(np.where(is_there, keys >> RANK_SHIFT, NO_RANK))


def rank_of(table: MergeTable, left: int, right: int) -> int:
    return ranks_of(table, left, np.array([right]))[0]


def keys_of(table: MergeTable) -> np.ndarray:
    """The keys of all merges in the order of their ranks."""
    return np.sort(table.slot_keys[table.slot_keys < NO_KEY])


def test_table_by_hand() -> None:
    table = build_merge_table(VOCABULARY, MERGES)
    a, b, c, ab, abc, bc = map(VOCABULARY.id_of, ("a", "b", "c", "ab", "abc", "bc"))
    assert table.byte_ids.tolist() == [VOCABULARY.id_of(one) for one in byte_characters()]
    keys = keys_of(table)
    pairs = table.byte_pair_keys[[97 * 256 + 98, 98 * 256 + 99, 97 * 256 + 97]]
    assert pairs.tolist() == [keys[0], keys[2], NO_KEY]
    assert np.flatnonzero(table.byte_pair_keys < NO_KEY).size == 2
    assert (keys >> RANK_SHIFT).tolist() == [0, 1, 2, 3]
    assert (keys >> TOKEN_BITS & TOKEN_MASK).tolist() == [a, ab, b, a]
    assert (keys & TOKEN_MASK).tolist() == [ab, abc, bc, abc]
    assert [rank_of(table, *pair) for pair in ((a, b), (ab, c), (b, c), (a, bc), (b, a))] == (
        [0, 1, 2, 3, NO_RANK]
    )
    assert table.least_as_left[[a, b, c, ab]].tolist() == [0, 2, NO_RANK, 1]
    assert table.least_as_right[[a, b, c, bc]].tolist() == [NO_RANK, 0, 1, 3]
    assert not table.is_sudden.any()


@pytest.mark.parametrize(
    ("merges", "expected"),
    [
        ("c d|b cd|a b", [True, True, False]),  # in "abcd" the b goes to "cd" before "a b" can
        ("a b|ab c|c d", [True, True, False]),
        ("c d|a b|b cd", [True, True, True]),  # "b cd" comes too late
        ("a b|b c|ab c", [True, True, True]),  # bytes beside a pair are seen there
        ("a a|aa aa", [True, False]),  # what is before "aa aa" may turn into "aa"
    ],
)
def test_free_merges_by_hand(merges: str, expected: list[bool]) -> None:
    pairs = [tuple(pair.split()) for pair in merges.split("|")]
    keys = keys_of(build_merge_table(vocabulary_of(pairs), pairs))
    assert (keys & FREE_BIT > 0).tolist() == expected


def test_merges_out_of_order_are_sudden() -> None:
    table = build_merge_table(VOCABULARY, [("ab", "c"), ("a", "b"), ("b", "c")])
    assert table.is_sudden.tolist() == [False, True, False]
    assert not (keys_of(table) & FREE_BIT).any()


def test_no_merges() -> None:
    table = build_merge_table(vocabulary_of([]), [])
    assert len(table.is_sudden) == 0 and (table.byte_pair_keys == NO_KEY).all()


def test_every_pair_of_a_trained_vocabulary_is_found_and_no_other() -> None:
    vocabulary, merges = trained()
    table = build_merge_table(vocabulary, merges)
    pairs = {tuple(map(vocabulary.id_of, pair)): rank for rank, pair in enumerate(merges)}
    for left in range(len(vocabulary)):
        assert ranks_of(table, left, np.arange(len(vocabulary))) == [
            pairs.get((left, right), NO_RANK) for right in range(len(vocabulary))
        ]


def test_full_rows_find_room() -> None:
    """Two bytes that merge with every other one, and whose rows cannot share an array at random."""
    merges = [(left, right) for left in "abc" for right in byte_characters()]
    vocabulary = vocabulary_of(merges)
    table = build_merge_table(vocabulary, merges)
    for rank, pair in enumerate(merges):
        assert rank_of(table, *map(vocabulary.id_of, pair)) == rank


def test_errors() -> None:
    with pytest.raises(TypeError, match=r"`merges` must have pairs of tokens\. Received: \('a',\)"):
        build_merge_table(VOCABULARY, [("a",)])
    with pytest.raises(ValueError, match=r"Received: 'b' 'a' at index 1, and .* without 'ba'"):
        build_merge_table(VOCABULARY, [("a", "b"), ("b", "a")])
    with pytest.raises(ValueError, match=r"once\. Received: 'a' 'b' at index 0 and again"):
        build_merge_table(VOCABULARY, [("a", "b"), ("b", "c"), ("a", "b")])
    few = Vocabulary(["<s>", "<pad>", "</s>", "<unk>", *byte_characters()[1:]], ROBERTA_TOKENS)
    with pytest.raises(ValueError, match=r"256 bytes\. Received: .* without 1 of .* 0x00, 'Ā'"):
        build_merge_table(few, [])


def test_more_tokens_than_a_key_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(VOCABULARY)
    most = "kbert.text.byte_level_bpe.merge_table.TOKEN_MASK"
    monkeypatch.setattr(most, count)
    build_merge_table(VOCABULARY, MERGES)
    monkeypatch.setattr(most, count - 1)
    message = rf"at most {count - 1} tokens and 1048574 merges\. Received: {count} and 4"
    with pytest.raises(ValueError, match=message):
        build_merge_table(VOCABULARY, MERGES)
