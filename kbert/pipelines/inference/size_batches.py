"""Rows of like size together, and no more at a time than a budget of bytes allows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kbert.data.batches.plans import within_budget

# Bytes of text that go through a graph at a time: its memory is some multiple of them.
BYTES_AT_A_TIME = 2_000_000


def size_batches(
    sizes: np.ndarray, most_rows: int, most_bytes: int = BYTES_AT_A_TIME
) -> list[np.ndarray]:
    """Divides rows into batches, the largest rows first.

    Args:
        sizes: int (n,), a measure of each row, its bytes for example.
        most_rows: rows of a batch.
        most_bytes: rows times the largest size, of a batch; a larger row is a batch of its own.

    Returns:
        Indices, int64; every row exactly once. No batch where there are no rows.
    """
    order = np.argsort(-np.asarray(sizes, "int64"), kind="stable")
    return within_budget(order, sizes, most_bytes, most_rows)


def answers_of_rows(
    run: Callable[[np.ndarray], dict[str, np.ndarray]],
    sizes: np.ndarray,
    most_rows: int,
    most_bytes: int = BYTES_AT_A_TIME,
) -> list[dict[str, Any]]:
    """Runs a function of batches over rows, those of like size together.

    Args:
        run: from the indices of some rows to what is found, name -> array with an entry a row.
        sizes: as in `size_batches`, like what follows.
        most_rows: as there.
        most_bytes: as there.

    Returns:
        A dict with the entries of each row, in their order.
    """
    answers: list[dict[str, Any]] = [{} for _ in sizes]
    for rows in size_batches(sizes, most_rows, most_bytes):
        found = run(rows)
        for place, row in enumerate(rows.tolist()):
            answers[row] = {name: values[place] for name, values in found.items()}
    return answers
