"""The states that an encoder gave to the tokens of many texts, and batches of them.

Shapes: n texts, B rows, L tokens of the longest row, M width of the encoder.
"""

import os
from collections.abc import Sequence

import numpy as np


class TextFeatures:
    """States of texts, in a file that is mapped into memory, for a training to gather.

    Args:
        states: (tokens, M), those of one text after those of another.
        starts: int (n,), where the states of each text begin; equal texts may share them.
        lengths: int (n,), tokens of each text.

    Attributes:
        states: As given, as a plain array.
        starts: int64 (n,).
        lengths: int64 (n,).
    """

    def __init__(self, states: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        self.states = states.view(np.ndarray)  # of np.memmap, every slice would cost more
        # One more, without tokens: the row -1.
        self._starts = np.append(np.asarray(starts, "int64"), 0)
        self._lengths = np.append(np.asarray(lengths, "int64"), 0)
        self.starts, self.lengths = self._starts[:-1], self._lengths[:-1]

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.lengths)

    def batch(self, rows: np.ndarray | Sequence[int], width: int | None = None) -> np.ndarray:
        """The states of some texts, as `bert_states` of a `BertFusedTransformer`.

        Args:
            rows: int (B,), indices of texts; -1 gives a row of padding.
            width: L, at least the longest of them; None takes that.

        Returns:
            (B, L, M) of the type of `states`, with zeros after the end of a text.

        Raises:
            ValueError: a row is no text, or `width` is too small.
        """
        starts, real = self._cells(rows, width)
        if not real.any():
            return np.zeros((*real.shape, self.states.shape[1]), self.states.dtype)
        cells = np.where(real, starts[:, None] + np.arange(real.shape[1]), 0)
        # Without "clip", NumPy checks all indices first; `_cells` did.
        gathered = self.states.take(cells, axis=0, mode="clip")
        gathered[~real] = 0
        return gathered

    def padding_mask(
        self, rows: np.ndarray | Sequence[int], width: int | None = None
    ) -> np.ndarray:
        """Which tokens of `batch` are real, as `bert_padding_mask`: bool (B, L).

        Args:
            rows: as there.
            width: as there.
        """
        return self._cells(rows, width)[1]

    def _cells(
        self, rows: np.ndarray | Sequence[int], width: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Where the rows begin (B,), and which of their cells are real (B, L)."""
        rows = np.asarray(rows, "int64")
        if rows.size and not (-1 <= rows.min() and rows.max() < len(self)):
            raise ValueError(
                f"`rows` must be in [-1, {len(self)}). Received: {rows.min()} to {rows.max()}"
            )
        lengths = self._lengths[rows]
        longest = int(lengths.max(initial=0))
        width = longest if width is None else width
        if width < longest:
            raise ValueError(
                f"`width` must be at least the longest text, {longest} tokens. Received: "
                f"width={width}"
            )
        return self._starts[rows], np.arange(width) < lengths[:, None]


def map_states(
    path: str | os.PathLike[str], tokens: int, width: int, dtype: np.dtype
) -> np.ndarray:
    """The states in a file, without reading it.

    Args:
        path: the file, of nothing but numbers.
        tokens: rows.
        width: M.
        dtype: type of the numbers.

    Returns:
        (tokens, M), read-only.
    """
    if not tokens * width:
        return np.zeros((tokens, width), dtype)  # no file of 0 bytes can be mapped
    return np.memmap(path, dtype, "r", shape=(tokens, width))
