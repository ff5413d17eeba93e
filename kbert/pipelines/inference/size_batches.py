"""Batches of rows of similar size, each within a budget of bytes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from kbert.data.batches.plans import within_budget

# Bytes of text per call of a graph: its memory is some multiple of them.
BYTES_AT_A_TIME = 2_000_000


def size_batches(
    sizes: np.ndarray, most_rows: int, most_bytes: int = BYTES_AT_A_TIME
) -> list[np.ndarray]:
    """Divides rows into batches, the largest rows first.

    Args:
        sizes: int (n,), the size of each row, for example its bytes.
        most_rows: the most rows of a batch.
        most_bytes: the most rows times largest size of a batch; a larger row is a batch of its own.

    Returns:
        Arrays of indices, int64; every row exactly once. No batch where there are no rows.
    """
    order = np.argsort(-np.asarray(sizes, "int64"), kind="stable")
    return within_budget(order, sizes, most_bytes, most_rows)


def answers_of_rows(
    run: Callable[[np.ndarray], dict[str, np.ndarray]],
    sizes: np.ndarray,
    most_rows: int,
    most_bytes: int = BYTES_AT_A_TIME,
) -> list[dict[str, Any]]:
    """Runs a function over rows, in batches of similar size.

    Args:
        run: maps the indices of some rows to results, name -> array with an entry a row.
        sizes: int (n,), the size of each row, for example its bytes.
        most_rows: the most rows of a batch.
        most_bytes: the most rows times largest size of a batch; a larger row is a batch of its own.

    Returns:
        A dict with the entries of each row, in the order of the rows.
    """
    answers: list[dict[str, Any]] = [{} for _ in sizes]
    for rows in size_batches(sizes, most_rows, most_bytes):
        found = run(rows)
        for place, row in enumerate(rows.tolist()):
            answers[row] = {name: values[place] for name, values in found.items()}
    return answers
