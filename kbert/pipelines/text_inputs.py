"""The forms in which texts may be given to `fit`, `evaluate` and `predict`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf


@dataclass(frozen=True)
class TextInputs:
    """Raw texts or pairs.

    Attributes:
        text_a: n str or bytes.
        text_b: n str or bytes, or None for single texts.
    """

    text_a: Sequence[Any]
    text_b: Sequence[Any] | None = None

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.text_a)

    def __getitem__(self, rows: slice) -> "TextInputs":
        """Some of the rows."""
        return TextInputs(self.text_a[rows], None if self.text_b is None else self.text_b[rows])


def read_single_texts(x: Any) -> list[Any] | None:
    """Recognises raw texts where each stands alone.

    Args:
        x: a list or array of str or bytes, or anything else.

    Returns:
        The texts, or None if `x` is something else.

    Raises:
        ValueError: a single text.
    """
    if isinstance(x, str | bytes):
        raise ValueError(f"`x` must be a list of texts. Received: x={x[:80]!r}, a single one")
    return list(as_list(x)) if is_texts(x) else None


def read_text_inputs(x: Any) -> TextInputs | None:
    """Recognises raw texts.

    Args:
        x: a list or array of str; a tuple of two such; a dict {"text"} or {"text_a", "text_b"};
            or anything else.

    Returns:
        The texts, or None if `x` is something else (token ids, a dataset).

    Raises:
        ValueError: a single text, a list of pairs, a dict of strings with other keys, or columns of
            different lengths.
    """
    if isinstance(x, str | bytes):
        raise ValueError(f"`x` must be a list of texts. Received: x={x[:80]!r}, a single one")
    if isinstance(x, list) and x and isinstance(x[0], list | tuple) and is_texts(x[0]) and x[0]:
        raise ValueError(
            "`x` must be a tuple of two lists, the first texts and the second texts of all pairs. "
            f"Received: a list that begins with {x[0]!r}"
        )
    columns: tuple[Any, ...]
    if isinstance(x, dict):
        if not any(is_texts(column) or isinstance(column, str | bytes) for column in x.values()):
            return None
        if set(x) not in ({"text"}, {"text_a"}, {"text_a", "text_b"}):
            raise ValueError(
                'a dict of texts must have the keys "text", or "text_a" and "text_b". '
                f"Received: {sorted(x)}"
            )
        columns = tuple(x[key] for key in sorted(x))
        for key, column in x.items():
            if not is_texts(column):
                raise ValueError(f"`{key}` must be a list of texts. Received: {key}={column!r:.80}")
    elif isinstance(x, tuple) and len(x) in (1, 2) and all(is_texts(column) for column in x):
        columns = x
    elif is_texts(x):
        columns = (x,)
    else:
        return None
    lists = [as_list(column) for column in columns]
    if len(lists) == 2 and len(lists[0]) != len(lists[1]):
        raise ValueError(
            f"`text_b` must be as long as `text_a`. Received: {len(lists[0])} and {len(lists[1])}"
        )
    return TextInputs(*lists)


def has_strings(dataset: tf.data.Dataset) -> bool:
    """Whether the elements of a dataset hold strings."""
    return any(spec.dtype == tf.string for spec in tf.nest.flatten(dataset.element_spec))


def is_texts(column: Any) -> bool:
    """Whether something is a column of texts; single entries may still be missing ones."""
    if isinstance(column, tf.Tensor):
        return bool(column.dtype == tf.string and column.shape.rank == 1)
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "OUS" and column.ndim == 1
    if hasattr(column, "to_numpy") and hasattr(column, "index"):  # a pandas column
        return is_texts(np.asarray(column, dtype=object))
    if not isinstance(column, list | tuple):
        return False
    return not column or any(isinstance(text, str | bytes) for text in column)


def as_list(column: Any) -> Sequence[Any]:
    """A column of texts as something that can be sliced."""
    if isinstance(column, tf.Tensor):
        column = column.numpy()
    return column if isinstance(column, list | tuple) else list(column)
