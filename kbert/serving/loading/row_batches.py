"""Length-bucketed batches of rows, with the answers in the order of the rows."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from kbert.data.batches.plans import size_batches

Columns = dict[str, list[Any]]


def in_batches(
    run: Callable[[Columns], Mapping[str, np.ndarray]],
    columns: Mapping[str, Sequence[Any]],
    batch_size: int,
) -> dict[str, np.ndarray]:
    """Runs rows a batch at a time, the longest first, and returns the outputs in the rows' order.

    `run` takes name -> a column of some rows, and returns name -> their answers (B, ...).
    Dimensions that each batch pads to its longest row are padded to the longest of all. A batch has
    `batch_size` rows, fewer of long texts; see `kbert.data.batches.plans`.
    """
    check_batch_size(batch_size)
    # By place: a column of a table counts by its index.
    columns = {name: list(column) for name, column in columns.items()}
    sizes = [sum(map(size_of, row)) for row in zip(*columns.values(), strict=True)]
    # Without rows, an empty batch yields the shapes of the outputs.
    chosen = size_batches(np.array(sizes), batch_size) or [np.zeros(0, "int64")]
    batches = [
        run({name: [column[i] for i in rows] for name, column in columns.items()})
        for rows in chosen
    ]
    joined = {key: joined_batches([batch[key] for batch in batches]) for key in batches[0]}
    back = np.argsort(np.concatenate(chosen), kind="stable")
    return {key: values[back] for key, values in joined.items()}


def check_batch_size(batch_size: Any) -> None:
    """Raises a ValueError for a number of rows that is no positive integer."""
    if not isinstance(batch_size, int | np.integer) or batch_size < 1:
        raise ValueError(
            f"`batch_size` must be an integer of at least 1. Received: batch_size={batch_size!r}"
        )


def size_of(value: Any) -> int:
    """Returns the length of a text, or of all texts of a list, for sorting only."""
    if isinstance(value, str | bytes):
        return len(value)
    return sum(map(size_of, value)) if isinstance(value, Iterable) else 1


def joined_batches(batches: Sequence[np.ndarray]) -> np.ndarray:
    """Concatenates batches (B, ...), padded with 0 or b"" to the largest further dimensions."""
    sizes = [max(sizes) for sizes in zip(*(batch.shape[1:] for batch in batches))]
    empty = b"" if batches[0].dtype == object else 0
    padded = [
        np.pad(
            batch,
            [(0, 0), *((0, most - size) for most, size in zip(sizes, batch.shape[1:]))],
            constant_values=empty,
        )
        for batch in batches
    ]
    return np.concatenate(padded)
