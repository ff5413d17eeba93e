"""Similarities of vectors, and the most similar ones of many, by NumPy alone."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

SIMILARITIES = ("cosine", "dot")
# Scores that are in memory at a time are at most 64 MB.
_QUERIES = 256
_ROWS = 1 << 16
_TINY = 1e-12


class Found(NamedTuple):
    """The best rows of a matrix for each of n queries, best first.

    `places` are int64 (n, k), the numbers of the rows; `scores` float32 (n, k), their similarities.
    """

    places: np.ndarray
    scores: np.ndarray


def similarity(a: Any, b: Any, kind: str = "cosine") -> np.ndarray:
    """Returns the similarities float32 (n, m) of each of n vectors with each of m.

    Args:
        a: float (n, D).
        b: float (m, D).
        kind: "cosine" or "dot".

    Raises:
        ValueError: the kind is unknown, or the vectors are no matrices of one width.
    """
    first, second = _checked(a, b, kind)
    return _ready(first, kind) @ _ready(second, kind).T


def search(
    queries: Any, matrix: Any, k: int = 10, kind: str = "cosine", block_rows: int = _ROWS
) -> Found:
    """Finds the k rows of a matrix that are most similar to each query; exact, in blocks.

    Of rows with the same score the first one comes first, whatever the blocks are. There are never
    more than 256 times `block_rows` scores in memory. The matrix may be a `numpy.memmap`.

    Args:
        queries: float (n, D).
        matrix: float (m, D).
        k: how many; fewer where the matrix has fewer rows.
        kind: "cosine" or "dot".
        block_rows: rows of the matrix that are compared at a time.

    Raises:
        ValueError: `k` or `block_rows` is below 1, the kind is unknown, the vectors are no matrices
            of one width, or a similarity is not a number.
    """
    for name, value in (("k", k), ("block_rows", block_rows)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    asked, rows = _checked(queries, matrix, kind)
    most = min(k, len(rows))
    index = np.zeros((len(asked), most), "int64")
    score = np.zeros((len(asked), most), "float32")
    for start in range(0, len(asked), _QUERIES):
        some = _ready(asked[start : start + _QUERIES], kind)
        best = Found(np.zeros((len(some), 0), "int64"), np.zeros((len(some), 0), "float32"))
        for first, block in _blocks(rows, block_rows):
            found = _best(some @ _ready(block, kind).T, most)
            best = _merged(best, Found(found.places + first, found.scores), most)
        index[start : start + _QUERIES], score[start : start + _QUERIES] = best
    return Found(index, score)


def _blocks(rows: np.ndarray, size: int) -> Iterator[tuple[int, np.ndarray]]:
    for first in range(0, len(rows), size):
        yield first, rows[first : first + size]


def _best(scores: np.ndarray, k: int) -> Found:
    """Returns the k best columns of each row, best first, the first of equal ones first."""
    if np.isnan(scores).any():
        raise ValueError("`queries` and `matrix` must hold finite numbers. Received: NaN or inf")
    k = min(k, scores.shape[1])
    least = np.partition(scores, scores.shape[1] - k, axis=1)[:, scores.shape[1] - k]
    # Those above the k-th best, and as many of those equal to it as are needed.
    rows, columns = np.nonzero(scores >= least[:, None])
    values = scores[rows, columns]
    order = np.lexsort((columns, -values, rows))
    rank = np.arange(len(rows)) - np.searchsorted(rows, rows)
    chosen = order[rank < k].reshape(len(scores), k)
    return Found(columns[chosen].astype("int64"), values[chosen])


def _merged(before: Found, more: Found, k: int) -> Found:
    """Returns the k best of two finds, of which those of the first have the lower numbers."""
    index = np.concatenate([before.places, more.places], axis=1)
    score = np.concatenate([before.scores, more.scores], axis=1)
    order = np.argsort(-score, axis=1, kind="stable")[:, :k]
    return Found(np.take_along_axis(index, order, 1), np.take_along_axis(score, order, 1))


def _checked(a: Any, b: Any, kind: str) -> tuple[np.ndarray, np.ndarray]:
    if kind not in SIMILARITIES:
        raise ValueError(
            f"`kind` must be one of {list(SIMILARITIES)}. Received: kind={kind!r}"
        )
    first, second = np.asanyarray(a), np.asanyarray(b)
    if first.ndim != 2 or second.ndim != 2 or first.shape[1] != second.shape[1]:
        raise ValueError(
            "vectors must be two matrices of one width. "
            f"Received: shapes {first.shape} and {second.shape}"
        )
    return first, second


def _ready(vectors: np.ndarray, kind: str) -> np.ndarray:
    """Returns vectors as float32, of unit length for cosines."""
    wide = np.asarray(vectors, "float32")
    if kind == "dot":
        return wide
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), _TINY)
