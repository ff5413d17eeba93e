"""An encoder's hidden states for the tokens of many texts, and batches of them.

Shapes: n texts, B rows, L tokens of the longest row, M width of the encoder.
"""

import os
from collections.abc import Sequence

import numpy as np


class TextFeatures:
    """Hidden states of texts, memory-mapped, to gather training batches from.

    Args:
        states: (tokens, M), one text after the other.
        starts: int (n,), offset of each text's first state; equal texts may share their states.
        lengths: int (n,), tokens of each text.

    Attributes:
        states: (tokens, M), a plain array.
        starts: int64 (n,).
        lengths: int64 (n,).
    """

    def __init__(self, states: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> None:
        self.states = states.view(np.ndarray)  # of np.memmap, every slice would cost more
        # An extra text without tokens, which index -1 selects.
        self._starts = np.append(np.asarray(starts, "int64"), 0)
        self._lengths = np.append(np.asarray(lengths, "int64"), 0)
        self.starts, self.lengths = self._starts[:-1], self._lengths[:-1]

    def __len__(self) -> int:
        """Returns the number of texts."""
        return len(self.lengths)

    def batch(self, rows: np.ndarray | Sequence[int], width: int | None = None) -> np.ndarray:
        """Gathers the states of some texts, for `bert_states` of a `BertFusedTransformer`.

        Args:
            rows: int (B,), indices of texts; -1 for a row of padding.
            width: L, the padded length; None for the longest of these texts.

        Returns:
            (B, L, M) of the dtype of `states`, with zeros in padded positions.

        Raises:
            ValueError: an index is out of range, or `width` is too small.
        """
        starts, real = self._cells(rows, width)
        if not real.any():
            return np.zeros((*real.shape, self.states.shape[1]), self.states.dtype)
        cells = np.where(real, starts[:, None] + np.arange(real.shape[1]), 0)
        # Without "clip", NumPy checks all indices first, as `_cells` did already.
        gathered = self.states.take(cells, axis=0, mode="clip")
        gathered[~real] = 0
        return gathered

    def padding_mask(
        self, rows: np.ndarray | Sequence[int], width: int | None = None
    ) -> np.ndarray:
        """Returns the padding mask of `batch`, bool (B, L), for `bert_padding_mask`.

        Args:
            rows: int (B,), indices of texts; -1 for a row of padding.
            width: L, the padded length; None for the longest of these texts.
        """
        return self._cells(rows, width)[1]

    def _cells(
        self, rows: np.ndarray | Sequence[int], width: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the offsets of the rows' first states (B,), and the padding mask (B, L)."""
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
    """Memory-maps the states of a file.

    Args:
        path: the file, raw numbers without a header.
        tokens: number of rows.
        width: M, the width of the states.
        dtype: type of the numbers.

    Returns:
        (tokens, M), read-only.
    """
    if not tokens * width:
        return np.zeros((tokens, width), dtype)  # no file of 0 bytes can be mapped
    return np.memmap(path, dtype, "r", shape=(tokens, width))
