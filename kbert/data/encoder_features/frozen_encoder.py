"""A frozen encoder: a function from token ids to hidden states.

Shapes: k texts of a batch, T tokens of its longest, M width of the encoder.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples


@dataclass(frozen=True)
class FrozenEncoder:
    """A function from token ids to hidden states, and an identification of the encoder.

    Attributes:
        encode: maps `token_ids` and `segment_ids` int32 (k, T) and `padding_mask` bool (k, T) to
            states (k, T, M); those of a text must depend on no other text.
        hidden_dim: M, the width of the states.
        fingerprint: hash of weights, configuration and compute dtype: of all that the states
            depend on besides the inputs.
        description: the encoder in readable JSON; the same for the same fingerprint.
    """

    encode: Callable[[dict[str, np.ndarray]], np.ndarray]
    hidden_dim: int
    fingerprint: str
    description: dict[str, Any] = field(default_factory=dict)

    def states(self, packed: PackedExamples, rows: np.ndarray) -> np.ndarray:
        """Encodes the texts with the indices `rows` (k,) together.

        Returns:
            States (tokens of these texts, M), one text after the other, without padding.

        Raises:
            ValueError: `encode` returns another shape, or numbers that are not finite.
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
