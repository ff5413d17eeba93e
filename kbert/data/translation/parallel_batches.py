"""Length bucketing of sentence pairs: batches within a budget of tokens, or of few fixed shapes.

Both sides of a pair are padded, so a batch has little padding where its pairs agree in both
lengths. Pairs are sorted by their longer side, which the budget counts, and within that by how much
longer the source is. Sources: Vaswani et al. 2017, section 5.1 ("batched together by approximate
sequence length"); the tokens of a batch are counted like `--max-tokens` of fairseq. Fixed shapes
are for compilers that compile each shape (XLA, TPU).

Lengths are those of each source and each target as the model reads it, in tokens, int (n,).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kbert.data.batches.plans import within_budget

# Standard deviation, in tokens, of the noise on the difference of the two lengths when shuffling.
# On Multi30k in 10,000 subwords, with 4096 tokens a batch, padding is 0.041 without noise, and two
# thirds of a pair's batch are the same in the next epoch; 0.054 and half of it with 0.5; 0.063 and
# a third with 1.
NOISE = 0.5


@dataclass(frozen=True)
class Bucket:
    """A shape of batches: `rows` pairs of `length` tokens a side, padding included."""

    rows: int
    length: int

    def __post_init__(self) -> None:
        if self.rows < 1 or self.length < 1:
            raise ValueError(
                "`rows` and `length` must be at least 1. Received: "
                f"rows={self.rows}, length={self.length}"
            )


@dataclass(frozen=True)
class FixedBatch:
    """A batch of a fixed shape: its pairs are `indices`, int64 (at most `bucket.rows`,)."""

    bucket: Bucket
    indices: np.ndarray

    @property
    def padded_indices(self) -> np.ndarray:
        """The indices, int64 (bucket.rows,), and -1 for rows of padding, at the end."""
        missing = self.bucket.rows - len(self.indices)
        return np.pad(self.indices, (0, missing), constant_values=-1)


def parallel_batch_plan(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> list[np.ndarray]:
    """Divides sentence pairs into batches of similar length.

    A pure function of its arguments: the same seed and epoch give the same batches on any machine.
    The number of batches, and their rows and widths, depend on the lengths and the budget alone:
    every epoch has the same number of steps. Pairs of rare lengths, such as the longest, share a
    batch with the same pairs again. Returns arrays of indices, int64 (rows,), every pair exactly
    once.

    Args:
        batch_tokens: the most positions of a batch: rows times the longest source or target,
            whichever is longer. A pair longer than that is a batch of its own.
        shuffle: whether batch order and composition depend on seed and epoch; otherwise the longest
            come first, so that memory runs out at once or never.
    """
    sources, targets = _checked_lengths(source_lengths, target_lengths)
    if batch_tokens < 1:
        raise ValueError(
            f"`batch_tokens` must be at least 1. Received: batch_tokens={batch_tokens}"
        )
    longest = np.maximum(sources, targets)
    random = np.random.default_rng((seed, epoch)) if shuffle else None
    difference = (sources - targets).astype("float64")
    if random is not None:
        # Ties come in a new order, and pairs of nearly equal lengths swap.
        difference += random.normal(0.0, NOISE, len(difference))
    order = np.lexsort((difference, -longest))  # stable
    batches = within_budget(order, longest, batch_tokens)
    if random is None:
        return batches
    return [batches[i] for i in random.permutation(len(batches))]


def parallel_padding_share(
    source_lengths: np.ndarray, target_lengths: np.ndarray, batches: Sequence[np.ndarray]
) -> float:
    """Returns the share of padding among all positions of `parallel_batch_plan`, 0 to 1."""
    sides = _checked_lengths(source_lengths, target_lengths)
    cells = sum(len(rows) * int(side[rows].max()) for rows in batches for side in sides)
    return 1.0 - sum(int(side.sum()) for side in sides) / cells if cells else 0.0


def _checked_lengths(
    source_lengths: np.ndarray, target_lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns lengths as int64 (n,), or raises a ValueError that says what they must be."""
    sides = {}
    for name, lengths in (("source_lengths", source_lengths), ("target_lengths", target_lengths)):
        given = np.asarray(lengths)
        if given.ndim != 1 or given.size and given.dtype.kind not in "iu":
            raise ValueError(
                f"`{name}` must be whole numbers of shape (n,). Received: shape {given.shape}, "
                f"dtype {given.dtype}"
            )
        if given.size and given.min() < 0:
            raise ValueError(f"`{name}` must be at least 0. Received: {int(given.min())}")
        sides[name] = given.astype("int64")
    sources, targets = sides.values()
    if len(sources) != len(targets):
        raise ValueError(
            "`target_lengths` must be as long as `source_lengths`. Received: "
            f"{len(sources)} sources and {len(targets)} targets"
        )
    return sources, targets


def fixed_batch_plan(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    buckets: Sequence[Bucket],
    shuffle: bool = False,
    seed: int = 0,
    epoch: int = 0,
) -> list[FixedBatch]:
    """Divides sentence pairs into batches of fixed shapes, with every pair in exactly one.

    A pure function of its arguments, and the number of batches of each shape is the same in every
    epoch. A pair goes to the shortest bucket that holds both its sides; the buckets must have
    different lengths. The other arguments are those of `parallel_batch_plan`.
    """
    longest = np.maximum(*_checked_lengths(source_lengths, target_lengths))
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
    """Returns the share of padding among all positions of `fixed_batch_plan`, 0 to 1."""
    sides = _checked_lengths(source_lengths, target_lengths)
    cells = sum(2 * batch.bucket.rows * batch.bucket.length for batch in batches)
    return 1.0 - sum(int(side.sum()) for side in sides) / cells if cells else 0.0
