"""Choice of the windows of long texts to train on: those with an answer, and some others."""

import numpy as np


def choose_windows(
    row: np.ndarray, has_answer: np.ndarray, others: int, seed: int
) -> np.ndarray:
    """Keeps the windows with an answer, and a few of each row's others.

    A long text has few windows with the answer to a question and many without; a model that trains
    on all of them learns above all that there is none.

    Args:
        row: int (W,), the row of each window.
        has_answer: bool (W,), whether an answer of the row is in the window.
        others: number of other windows that each row keeps, 0 or more; all where it has fewer.
        seed: seed of the draw. The same arguments give the same windows.

    Returns:
        int64, indices of windows, ascending. A row without any answer keeps `others` windows.

    Raises:
        ValueError: `others` is negative, or the two arrays differ in length.
    """
    if others < 0:
        raise ValueError(f"`others` must be 0 or more. Received: others={others}")
    if len(row) != len(has_answer):
        raise ValueError(
            "`row` and `has_answer` must have one entry a window. "
            f"Received: {len(row)} and {len(has_answer)}"
        )
    rest = np.flatnonzero(~np.asarray(has_answer, bool))
    draw = np.random.default_rng(seed).random(len(rest))
    rest = rest[np.lexsort((draw, row[rest]))]
    rows = row[rest]
    rank = np.arange(len(rest)) - np.searchsorted(rows, rows)
    return np.sort(np.concatenate([np.flatnonzero(has_answer), rest[rank < others]]))
