"""Hidden states of many texts by a frozen encoder: the function, and batches of what it returned.

Shapes: n texts, k or B texts of a batch, T or L tokens of its longest, M width of the encoder.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples


@dataclass(frozen=True)
class FrozenEncoder:
    """A function from token ids to hidden states, and an identification of the encoder."""

    # maps `token_ids` and `segment_ids` int32 (k, T) and `padding_mask` bool (k, T) to states
    # (k, T, M); those of a text must depend on no other text
    encode: Callable[[dict[str, np.ndarray]], np.ndarray]
    hidden_dim: int  # M, the width of the states
    # hash of weights, configuration and compute dtype: all that the states depend on but inputs
    fingerprint: str
    # the encoder in readable JSON; the same for the same fingerprint
    description: dict[str, Any] = field(default_factory=dict)

    def states(self, packed: PackedExamples, rows: np.ndarray) -> np.ndarray:
        """Encodes the texts with the indices `rows` (k,) together.

        Returns states (tokens of these texts, M), one text after the other, without padding; a
        ValueError if they are not finite.
        """
        lengths = packed.lengths[rows]
        columns = np.arange(lengths.max())
        real = columns < lengths[:, None]
        cells = np.where(real, packed.starts[rows][:, None] + columns, 0)
        inputs = {
            "token_ids": np.where(real, packed.token_ids[cells], packed.padding_id),
            "segment_ids": np.where(real, packed.segment_ids[cells], 0),
        }
        inputs = {name: ids.astype("int32") for name, ids in inputs.items()}
        states = np.asarray(self.encode({**inputs, "padding_mask": real}))
        if states.shape != (*real.shape, self.hidden_dim):
            raise ValueError(
                f"`encode` must give states of shape {(*real.shape, self.hidden_dim)}. Received: "
                f"shape {states.shape}"
            )
        states = states[real]
        if not np.isfinite(states).all():
            bad = rows[np.repeat(np.arange(len(rows)), lengths)[~np.isfinite(states).all(axis=1)]]
            raise ValueError(
                f"`encode` must give finite states. Received: others for the text at {bad[0]}"
            )
        return states


class TextFeatures:
    """Hidden states of texts, memory-mapped, to gather training batches from. M is `hidden_dim`.

    Args:
        shards: arrays (tokens, M), at least one, in which states of a text are contiguous.
        shard_of: int (n,), the number of each text's array.
        starts: int (n,), first row of each text there; equal texts may share their states.
        lengths: int (n,), tokens of each text.
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
        return len(self.lengths)

    def batch(self, rows: np.ndarray | Sequence[int]) -> np.ndarray:
        """Gathers the states of some texts, for `bert_states` of a `BertFusedTransformer`.

        `rows` are indices of texts (B,), -1 for a row of padding. Returns (B, L, M) of `dtype`,
        with zeros in padded positions.
        """
        rows = np.asarray(rows, "int64")
        if rows.size and not (-1 <= rows.min() and rows.max() < len(self)):
            raise ValueError(
                f"`rows` must be in [-1, {len(self)}). Received: {rows.min()} to {rows.max()}"
            )
        width = int(self._lengths[rows].max(initial=0))
        gathered = np.zeros((len(rows), width, self.hidden_dim), self.dtype)
        columns = (self._shard_of[rows], self._starts[rows], self._lengths[rows])
        for states, shard, start, length in zip(gathered, *(column.tolist() for column in columns)):
            states[:length] = self._shards[shard][start : start + length]
        return gathered
