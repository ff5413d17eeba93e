"""Examples as token ids without padding."""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class PackedExamples:
    """Examples as token ids, one after the other, without padding.

    Attributes:
        token_ids: int32 (tokens of all examples, and possibly of others).
        segment_ids: int32, of the same shape: 0 in the first text, 1 in the second.
        starts: int64 (n,), offset of each example's first token.
        lengths: int32 (n,), tokens of each example.
        truncated: bool (n,), whether tokens were cut off.
        padding_id: id of the padding token.
    """

    token_ids: np.ndarray
    segment_ids: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray
    truncated: np.ndarray
    padding_id: int = 0

    def __len__(self) -> int:
        """Returns the number of examples."""
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """Returns the number of tokens of all examples, special ones included."""
        return int(self.lengths.sum())

    def select(self, examples: np.ndarray) -> "PackedExamples":
        """Returns some of the examples; the tokens of the others stay, unreferenced.

        Args:
            examples: int, indices of examples.
        """
        columns = ("starts", "lengths", "truncated")
        return replace(self, **{name: getattr(self, name)[examples] for name in columns})
