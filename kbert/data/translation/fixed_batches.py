"""Batches of sentence pairs in few fixed shapes, for compilers that compile each shape (XLA, TPU).

Each bucket has one number of rows and one length, for sources and targets alike. All its batches
have that shape; the last one may lack rows, which the reader pads.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbert.data.translation.parallel_batches import checked_lengths


@dataclass(frozen=True)
class Bucket:
    """A shape of batches.

    Attributes:
        rows: sentence pairs of a batch.
        length: tokens of a source and of a target, padding included.
    """

    rows: int
    length: int

    def __post_init__(self) -> None:
        """Checks that the numbers are positive."""
        if self.rows < 1 or self.length < 1:
            raise ValueError(
                "`rows` and `length` must be at least 1. Received: "
                f"rows={self.rows}, length={self.length}"
            )


@dataclass(frozen=True)
class FixedBatch:
    """A batch of a fixed shape.

    Attributes:
        bucket: the shape.
        indices: int64 (at most `bucket.rows`,), the pairs of the batch.
    """

    bucket: Bucket
    indices: np.ndarray

    @property
    def padded_indices(self) -> np.ndarray:
        """Returns the indices, int64 (bucket.rows,), and -1 for rows of padding, at the end."""
        missing = self.bucket.rows - len(self.indices)
        return np.pad(self.indices, (0, missing), constant_values=-1)


def length_buckets(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    count: int = 8,
    multiple: int = 8,
) -> list[Bucket]:
    """Chooses the shapes with the least padding.

    The best division of the lengths into buckets is found by dynamic programming over all of them,
    with the exact number of positions of each, rows of padding included.

    Args:
        source_lengths: int (n,), tokens of each source as the model reads it.
        target_lengths: int (n,), tokens of each target as the model reads it.
        batch_tokens: the most positions of a batch, rows times length, padding included. A length
            above it gets a bucket of one row.
        count: the most buckets.
        multiple: divisor of the lengths, and of the rows where there are that many. The last
            length is rounded up as well: to no more than the model's positions, if it divides
            their number.

    Returns:
        Buckets, the shortest first; the last one holds the longest pair. Empty without pairs.

    Raises:
        ValueError: the lengths are not one a pair, or a number is below 1.
    """
    for name, value in (("batch_tokens", batch_tokens), ("count", count), ("multiple", multiple)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    longest = np.maximum(*checked_lengths(source_lengths, target_lengths))
    rounded = -(-np.maximum(longest, 1) // multiple) * multiple
    values, pairs = np.unique(rounded, return_counts=True)
    shapes = [Bucket(_rows(batch_tokens, int(value), multiple), int(value)) for value in values]
    before = np.concatenate([[0], np.cumsum(pairs)])  # pairs shorter than each value
    # cheapest[i] is the least number of positions of the i shortest lengths, with the ends of the
    # buckets that reach it; each iteration allows one more bucket.
    cheapest: list[tuple[float, list[int]]] = [(0.0, []), *((np.inf, []) for _ in values)]
    for _ in range(min(count, len(values))):
        renewed = list(cheapest)
        for end, shape in enumerate(shapes, start=1):
            for start in range(end):
                batches = -(-int(before[end] - before[start]) // shape.rows)
                cells = cheapest[start][0] + batches * shape.rows * shape.length
                if cells < renewed[end][0]:
                    renewed[end] = (cells, [*cheapest[start][1], end - 1])
        cheapest = renewed
    return [shapes[i] for i in cheapest[-1][1]]


def fixed_batch_plan(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    buckets: Sequence[Bucket],
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> list[FixedBatch]:
    """Divides sentence pairs into batches of fixed shapes.

    A pure function of its arguments, and the number of batches of each shape is the same in every
    epoch.

    Args:
        source_lengths: int (n,), tokens of each source as the model reads it.
        target_lengths: int (n,), tokens of each target as the model reads it.
        buckets: the shapes, such as those of `length_buckets`, each length once. A pair goes to
            the shortest one that holds both its sides.
        shuffle: whether batch order and composition depend on seed and epoch; otherwise the longest
            come first.
        seed: seed of the shuffling, at least 0.
        epoch: number of the epoch, from 0.

    Returns:
        Batches, every pair in exactly one.

    Raises:
        ValueError: the lengths are not one a pair, a length occurs twice among the buckets, or a
            pair fits none.
    """
    longest = np.maximum(*checked_lengths(source_lengths, target_lengths))
    shapes = sorted(buckets, key=lambda bucket: bucket.length)
    lengths = np.array([bucket.length for bucket in shapes], "int64")
    if len(np.unique(lengths)) < len(lengths):
        raise ValueError(
            "`buckets` must have different lengths. Received: lengths "
            f"{', '.join(map(str, lengths))}"
        )
    bucket_of = np.searchsorted(lengths, longest)
    unfit = np.flatnonzero(bucket_of == len(lengths))
    if len(unfit):
        raise ValueError(
            f"`buckets` must hold every pair. Received: {int(lengths.max(initial=0))} tokens at "
            f"most, and {len(unfit)} longer pairs, the first at index {unfit[0]} with "
            f"{longest[unfit[0]]} tokens"
        )
    random = np.random.default_rng((seed, epoch)) if shuffle else None
    batches: list[FixedBatch] = []
    for number in reversed(range(len(shapes))):
        rows = np.flatnonzero(bucket_of == number)
        # All batches of a bucket have one width, so their pairs need not be of similar length.
        order = np.argsort(-longest[rows], kind="stable")
        rows = rows[order] if random is None else random.permutation(rows)
        size = shapes[number].rows
        batches.extend(
            FixedBatch(shapes[number], rows[i : i + size]) for i in range(0, len(rows), size)
        )
    if random is None:
        return batches
    return [batches[i] for i in random.permutation(len(batches))]


def fixed_padding_share(
    source_lengths: np.ndarray, target_lengths: np.ndarray, batches: Sequence[FixedBatch]
) -> float:
    """Returns the share of padding among all positions of the sources and targets, 0 to 1.

    Args:
        source_lengths: int (n,), tokens of each source.
        target_lengths: int (n,), tokens of each target.
        batches: from `fixed_batch_plan`.

    Raises:
        ValueError: the lengths are not one a pair.
    """
    sides = checked_lengths(source_lengths, target_lengths)
    cells = sum(2 * batch.bucket.rows * batch.bucket.length for batch in batches)
    return 1.0 - sum(int(side.sum()) for side in sides) / cells if cells else 0.0


def _rows(batch_tokens: int, length: int, multiple: int) -> int:
    rows = max(1, batch_tokens // length)
    return rows if rows < multiple else rows - rows % multiple
