"""The merges of a byte-level BPE as arrays, checked against its vocabulary.

Shapes: V tokens, M merges.
"""

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from kbert.text.vocabulary import Vocabulary, byte_characters

# A merge as one number, its key: from the highest bit down its rank, whether it is free (see
# `MergeTable`), its left token, and the token that it makes. Of two keys the less has the less
# rank; and to look up one number takes half as long as two.
TOKEN_BITS = 21
TOKEN_MASK = (1 << TOKEN_BITS) - 1
FREE_BIT = 1 << 2 * TOKEN_BITS
RANK_SHIFT = 2 * TOKEN_BITS + 1
NO_KEY = (1 << 63) - 1  # of a pair that no merge joins; above all keys
NO_RANK = NO_KEY >> RANK_SHIFT
_PAIR = 2  # tokens
# With more than twice as many slots as entries a row soon finds a place.
_SLOTS_A_MERGE = 4
_TRIES = 64


@dataclasses.dataclass(frozen=True)
class MergeTable:
    """Merges by their pairs of tokens; the rank of a merge is its place in the list.

    A merge is `sudden` if the token that it makes is part of an earlier merge: that one becomes
    possible in its turn, which no training order has. Then only one pair may be merged at a time.

    A merge of a, b is free if none is sudden, and no merge of at most its rank joins b with a
    merged token after it, or a merged token with a before it. If both neighbours of such a pair
    have higher ranks now, no merge of theirs can get ahead of it, whatever they turn into.
    """

    byte_ids: np.ndarray  # the token of each byte, int64 (256,)
    byte_pair_keys: np.ndarray  # key of the pair of bytes a, b at 256 a + b, int64 (65536,)
    # The key of a pair of tokens a, b is at `row_starts[a] + b`, if a is the left token there: the
    # rows of all tokens share one array, each with its entries in gaps of the others.
    row_starts: np.ndarray  # int64 (V,)
    slot_keys: np.ndarray  # int64 (slots,)
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
    return _table_of(vocabulary, ids[:, :_PAIR], ids[:, _PAIR])


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
    if len(vocabulary) > TOKEN_MASK or len(pairs) >= NO_RANK:
        raise ValueError(
            f"`vocabulary` must have at most {TOKEN_MASK} tokens and {NO_RANK - 1} merges. "
            f"Received: {len(vocabulary)} and {len(pairs)}"
        )
    byte_ids = np.array([vocabulary.id_of(one) for one in byte_characters()])
    ranks = np.arange(len(pairs))
    left, right = pairs.T
    is_merged = np.full(len(vocabulary), False)
    is_merged[results] = True
    least_as_left = _least_ranks(left, ranks, len(vocabulary))
    least_as_right = _least_ranks(right, ranks, len(vocabulary))
    is_sudden = np.minimum(least_as_left[results], least_as_right[results]) <= ranks
    after = _least_ranks(left[is_merged[right]], ranks[is_merged[right]], len(vocabulary))
    before = _least_ranks(right[is_merged[left]], ranks[is_merged[left]], len(vocabulary))
    is_free = (after[right] > ranks) & (before[left] > ranks) & ~is_sudden.any()
    keys = ranks << RANK_SHIFT | is_free * FREE_BIT | left << TOKEN_BITS | results
    byte_of = np.full(len(vocabulary), -1)
    byte_of[byte_ids] = range(256)
    of_bytes = np.flatnonzero((byte_of[pairs] >= 0).all(axis=1))
    byte_pair_keys = np.full(256 * 256, NO_KEY)
    byte_pair_keys[byte_of[left[of_bytes]] * 256 + byte_of[right[of_bytes]]] = keys[of_bytes]
    row_starts, slot_keys = _displaced_rows(left, right, keys, len(vocabulary))
    return MergeTable(
        byte_ids=byte_ids,
        byte_pair_keys=byte_pair_keys,
        row_starts=row_starts,
        slot_keys=slot_keys,
        is_sudden=is_sudden,
        least_as_left=least_as_left,
        least_as_right=least_as_right,
    )


def _least_ranks(tokens: np.ndarray, ranks: np.ndarray, num_tokens: int) -> np.ndarray:
    """Returns the least rank of each token, int32 (V,); `tokens` has the token of each rank."""
    least = np.full(num_tokens, NO_RANK, np.int32)
    np.minimum.at(least, tokens, ranks.astype(np.int32))
    return least


def _displaced_rows(
    left: np.ndarray, right: np.ndarray, keys: np.ndarray, num_tokens: int
) -> tuple[np.ndarray, np.ndarray]:
    """Makes `row_starts` and `slot_keys`: a look-up without a search.

    Rows are placed from the fullest down, each where all its entries are in gaps.

    Source: Tarjan and Yao 1979, "Storing a sparse table", section 3.
    """
    order = np.lexsort((right, left))
    tokens, firsts, counts = np.unique(left[order], return_index=True, return_counts=True)
    num_starts = _SLOTS_A_MERGE * len(left) + 1
    slots = np.full(num_starts + num_tokens, NO_KEY)
    row_starts = np.zeros(num_tokens, np.int64)
    draw = np.random.default_rng(0)
    for row in np.argsort(-counts, kind="stable"):
        merges = order[firsts[row] : firsts[row] + counts[row]]
        starts = draw.integers(num_starts, size=_TRIES)
        fits = (slots[starts[:, np.newaxis] + right[merges]] == NO_KEY).all(axis=1)
        if fits.any():
            start = starts[fits.argmax()]
        else:  # a second row of very many entries; at the end there is room
            start = len(slots)
            slots = np.append(slots, np.full(num_tokens, NO_KEY))
        row_starts[tokens[row]] = start
        slots[start + right[merges]] = keys[merges]
    return row_starts, slots
