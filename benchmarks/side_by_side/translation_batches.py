"""How pairs are cut into batches, on TensorFlow and on JAX."""

from typing import Any

import keras
import numpy as np

from kbert.data.translation.parallel_batches import Bucket
from kbert.data.translation.parallel_pipeline import PackedPairs

SIDES = ("sources", "targets")


def batch_shapes(tokens: int, *of: PackedPairs) -> dict[str, Any]:
    """Batches of at most as many cells a side; few shapes for JAX, which compiles each."""
    if keras.backend.backend() == "tensorflow":
        return {"batch_tokens": tokens}
    sides = (np.concatenate([getattr(one, side).lengths for one in of]) for side in SIDES)
    return {"buckets": length_buckets(*sides, tokens, count=3)}


def length_buckets(
    source_lengths: np.ndarray,
    target_lengths: np.ndarray,
    batch_tokens: int,
    count: int = 8,
    multiple: int = 8,
) -> list[Bucket]:
    """Chooses the shapes with the least padding, the shortest first; none without pairs.

    The best division of the lengths into buckets is found by dynamic programming over all of them,
    with the exact number of positions of each, rows of padding included.

    Args:
        batch_tokens: the most positions of a batch, rows times length, padding included. A length
            above it gets a bucket of one row.
        count: the most buckets.
        multiple: divisor of the lengths, and of the rows where there are that many. The last length
            is rounded up as well: to no more than the model's positions, if it divides their
            number.
    """
    longest = np.maximum(source_lengths, target_lengths)
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


def _rows(batch_tokens: int, length: int, multiple: int) -> int:
    rows = max(1, batch_tokens // length)
    return rows if rows < multiple else rows - rows % multiple
