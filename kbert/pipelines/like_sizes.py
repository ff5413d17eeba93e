"""Rows of like size together, and no more at a time than a budget of bytes allows."""

from collections.abc import Iterator

import numpy as np

# Bytes of text that go through a graph at a time: its memory is some multiple of them.
BYTES_AT_A_TIME = 2_000_000


def like_sizes(
    sizes: np.ndarray, most_rows: int, most_bytes: int = BYTES_AT_A_TIME
) -> Iterator[np.ndarray]:
    """Divides rows into batches, the largest rows first.

    Args:
        sizes: int (n,), a measure of each row, its bytes for example.
        most_rows: rows of a batch.
        most_bytes: rows times the largest size, of a batch; a larger row is a batch of its own.

    Yields:
        Indices, int64; every row exactly once. No batch where there are no rows.
    """
    order = np.argsort(-np.asarray(sizes, "int64"), kind="stable")
    start = 0
    while start < len(order):
        largest = max(1, int(sizes[order[start]]))
        count = max(1, min(most_rows, most_bytes // largest))
        yield order[start : start + count]
        start += count
