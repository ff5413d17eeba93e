"""An encoder's hidden states for the tokens of many texts, and batches of them.

Shapes: n texts, B rows, L tokens of the longest row, M width of the encoder.
"""

from collections.abc import Sequence

import numpy as np


class TextFeatures:
    """Hidden states of texts, memory-mapped, to gather training batches from.

    Args:
        shards: arrays (tokens, M), at least one, in which states of a text are contiguous.
        shard_of: int (n,), the number of each text's array.
        starts: int (n,), first row of each text there; equal texts may share their states.
        lengths: int (n,), tokens of each text.

    Attributes:
        lengths: int64 (n,).
        dtype: type of the states.
        hidden_dim: M.
    """

    def __init__(
        self,
        shards: Sequence[np.ndarray],
        shard_of: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
    ) -> None:
        # Slices of np.memmap would cost more than those of plain arrays.
        self._shards = [shard.view(np.ndarray) for shard in shards]
        self.dtype, self.hidden_dim = self._shards[0].dtype, self._shards[0].shape[1]
        # An extra text without tokens, which index -1 selects.
        columns = (shard_of, starts, lengths)
        self._shard_of, self._starts, self._lengths = (
            np.append(np.asarray(column, "int64"), 0) for column in columns
        )
        self.lengths = self._lengths[:-1]

    def __len__(self) -> int:
        """Returns the number of texts."""
        return len(self.lengths)

    def batch(self, rows: np.ndarray | Sequence[int], width: int | None = None) -> np.ndarray:
        """Gathers the states of some texts, for `bert_states` of a `BertFusedTransformer`.

        Args:
            rows: int (B,), indices of texts; -1 for a row of padding.
            width: L, the padded length; None for the longest of these texts.

        Returns:
            (B, L, M) of `dtype`, with zeros in padded positions.

        Raises:
            ValueError: an index is out of range, or `width` is too small.
        """
        rows, width = self._checked(rows, width)
        gathered = np.zeros((len(rows), width, self.hidden_dim), self.dtype)
        columns = (self._shard_of[rows], self._starts[rows], self._lengths[rows])
        for states, shard, start, length in zip(gathered, *(column.tolist() for column in columns)):
            states[:length] = self._shards[shard][start : start + length]
        return gathered

    def padding_mask(
        self, rows: np.ndarray | Sequence[int], width: int | None = None
    ) -> np.ndarray:
        """Returns the padding mask of `batch`, bool (B, L), for `bert_padding_mask`.

        Args:
            rows: int (B,), indices of texts; -1 for a row of padding.
            width: L, the padded length; None for the longest of these texts.
        """
        rows, width = self._checked(rows, width)
        return np.arange(width) < self._lengths[rows][:, None]

    def _checked(
        self, rows: np.ndarray | Sequence[int], width: int | None
    ) -> tuple[np.ndarray, int]:
        rows = np.asarray(rows, "int64")
        if rows.size and not (-1 <= rows.min() and rows.max() < len(self)):
            raise ValueError(
                f"`rows` must be in [-1, {len(self)}). Received: {rows.min()} to {rows.max()}"
            )
        longest = int(self._lengths[rows].max(initial=0))
        width = longest if width is None else width
        if width < longest:
            raise ValueError(
                f"`width` must be at least the longest text, {longest} tokens. Received: "
                f"width={width}"
            )
        return rows, width
