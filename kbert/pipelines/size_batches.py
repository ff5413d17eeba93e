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
    """Divides rows, by their sizes int (n,), into batches of indices int64, the largest rows first.

    `most_bytes` limits rows times largest size; a larger row is a batch of its own. No batch is
    empty: there is none where there are no rows.
    """
    order = np.argsort(-np.asarray(sizes, "int64"), kind="stable")
    return within_budget(order, sizes, most_bytes, most_rows)


def answers_of_rows(
    run: Callable[[np.ndarray], dict[str, np.ndarray]],
    sizes: np.ndarray,
    most_rows: int,
    most_bytes: int = BYTES_AT_A_TIME,
) -> list[dict[str, Any]]:
    """Runs a function over rows, in the batches of `size_batches`; returns a dict a row, in order.

    `run` maps the indices of some rows to results, name -> array with an entry a row.
    """
    answers: list[dict[str, Any]] = [{} for _ in sizes]
    for rows in size_batches(sizes, most_rows, most_bytes):
        found = run(rows)
        for place, row in enumerate(rows.tolist()):
            answers[row] = {name: values[place] for name, values in found.items()}
    return answers
