"""The merges of a byte-level BPE as arrays, checked against its vocabulary.

Shapes: V tokens, M merges.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from kbert.text.vocabulary import Vocabulary, byte_characters

NO_RANK = 1 << 30  # of a pair that no merge joins; above all ranks
_PAIR = 2  # tokens
# With more than twice as many slots as entries a row soon finds a place.
_SLOTS_A_MERGE = 4
_TRIES = 64


@dataclasses.dataclass(frozen=True)
class MergeTable:
    """Merges by their pairs of tokens; the rank of a merge is its place in the list.

    A merge is `sudden` if the token that it makes is part of an earlier merge: that one becomes
    possible in its turn, which no training order has. Then only one pair may be merged at a time.
    """

    byte_ids: np.ndarray  # the token of each byte, int32 (256,)
    byte_pair_ranks: np.ndarray  # rank of the pair of bytes a, b at 256 a + b, int32 (65536,)
    # The rank of a pair of tokens a, b is at `row_starts[a] + b`, if a is the left token of its
    # merge: the rows of all tokens share one array, each with its entries in gaps of the others.
    row_starts: np.ndarray  # int32 (V,)
    slot_ranks: np.ndarray  # int32 (slots,)
    lefts: np.ndarray  # the left token of each merge, by rank, then -1, int32 (M + 1,)
    results: np.ndarray  # the token that each merge makes, by rank, int32 (M,)
    is_sudden: np.ndarray  # by rank, bool (M,)
    # The least rank of a merge in which each token is the left one, or the right one, int32 (V,).
    least_as_left: np.ndarray
    least_as_right: np.ndarray


def build_merge_table(vocabulary: Vocabulary, merges: Sequence[Sequence[str]]) -> MergeTable:
    """Makes the table of `merges`, pairs of tokens in the order in which they are merged.

    Raises what `merges_of` raises, and a ValueError if the vocabulary lacks a byte.
    """
    missing = [byte for byte, one in enumerate(byte_characters()) if one not in vocabulary]
    if missing:
        raise ValueError(
            "`vocabulary` must have a token for each of the 256 bytes. Received: "
            f"{vocabulary!r} without {len(missing)} of them, the first one {missing[0]:#04x}, "
            f"{byte_characters()[missing[0]]!r}"
        )
    ids = merges_of(vocabulary, merges, "`merges`", "index", 0)
    return _table_of(vocabulary, ids[:, :_PAIR], ids[:, _PAIR].astype(np.int32))


def merges_of(
    vocabulary: Vocabulary,
    merges: Iterable[Sequence[str]],
    where: str,
    place: str,
    first: int,
) -> np.ndarray:
    """Returns the ids of the tokens of each pair, and of the one that they make, int64 (M, 3).

    `where`, `place` and `first` describe the source of the merges in errors.

    Raises:
        TypeError: A merge is no pair of strings.
        ValueError: A merge is there twice, or names or makes a token that is not in the vocabulary.
    """
    found: dict[tuple[int, int], int] = {}
    for number, merge in enumerate(merges, first):
        if len(merge) != _PAIR or not all(isinstance(token, str) for token in merge):
            raise TypeError(
                f"{where} must have pairs of tokens. Received: {merge!r} at {place} {number}"
            )
        left, right = merge
        for token in (left, right, left + right):
            if token not in vocabulary:
                raise ValueError(
                    f"{where} must be merges of the vocabulary, which has both tokens and the one "
                    f"that they make. Received: {left!r} {right!r} at {place} {number}, and "
                    f"{vocabulary!r} without {token!r}"
                )
        pair = (vocabulary.id_of(left), vocabulary.id_of(right))
        if pair in found:
            before = list(found).index(pair) + first
            raise ValueError(
                f"{where} must have each pair once. Received: {left!r} {right!r} at {place} "
                f"{before} and again at {place} {number}"
            )
        found[pair] = vocabulary.id_of(left + right)
    return np.array([(*pair, made) for pair, made in found.items()], np.int64).reshape(-1, 3)


def _table_of(vocabulary: Vocabulary, pairs: np.ndarray, results: np.ndarray) -> MergeTable:
    """Makes the table of pairs of token ids, int64 (M, 2), and of the tokens that they make."""
    byte_ids = np.array([vocabulary.id_of(one) for one in byte_characters()], np.int32)
    ranks = np.arange(len(pairs), dtype=np.int32)
    left, right = pairs.T
    least_as_left = np.full(len(vocabulary), NO_RANK, np.int32)
    least_as_right = least_as_left.copy()
    np.minimum.at(least_as_left, left, ranks)
    np.minimum.at(least_as_right, right, ranks)
    byte_of = np.full(len(vocabulary), -1)
    byte_of[byte_ids] = range(256)
    of_bytes = np.flatnonzero((byte_of[pairs] >= 0).all(axis=1))
    byte_pair_ranks = np.full(256 * 256, NO_RANK, np.int32)
    byte_pair_ranks[byte_of[left[of_bytes]] * 256 + byte_of[right[of_bytes]]] = of_bytes
    row_starts, slot_ranks = _displaced_rows(left, right, len(vocabulary))
    return MergeTable(
        byte_ids=byte_ids,
        byte_pair_ranks=byte_pair_ranks,
        row_starts=row_starts,
        slot_ranks=slot_ranks,
        lefts=np.append(left, -1).astype(np.int32),
        results=results,
        is_sudden=np.minimum(least_as_left[results], least_as_right[results]) <= ranks,
        least_as_left=least_as_left,
        least_as_right=least_as_right,
    )


def _displaced_rows(
    left: np.ndarray, right: np.ndarray, num_tokens: int
) -> tuple[np.ndarray, np.ndarray]:
    """Makes `row_starts` and `slot_ranks`: a look-up without a search.

    Rows are placed from the fullest down, each where all its entries are in gaps; a slot without an
    entry has the rank M, whose left token is none.

    Source: Tarjan and Yao 1979, "Storing a sparse table", section 3.
    """
    order = np.lexsort((right, left))
    tokens, firsts, counts = np.unique(left[order], return_index=True, return_counts=True)
    num_starts = _SLOTS_A_MERGE * len(left) + 1
    slots = np.full(num_starts + num_tokens, len(left), np.int32)
    row_starts = np.zeros(num_tokens, np.int32)
    draw = np.random.default_rng(0)
    for row in np.argsort(-counts, kind="stable"):
        merges = order[firsts[row] : firsts[row] + counts[row]]
        starts = draw.integers(num_starts, size=_TRIES)
        fits = (slots[starts[:, np.newaxis] + right[merges]] == len(left)).all(axis=1)
        if fits.any():
            start = starts[fits.argmax()]
        else:  # a second row of very many entries; at the end there is room
            start = len(slots)
            slots = np.append(slots, np.full(num_tokens, len(left), np.int32))
        row_starts[tokens[row]] = start
        slots[start + right[merges]] = merges
    return row_starts, slots
