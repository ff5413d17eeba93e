"""An encoder that learns no more: a function from token ids to states.

Shapes: k texts of a batch, T tokens of its longest, M width of the encoder.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from kbert.data.batches.packed_examples import PackedExamples


@dataclass(frozen=True)
class FrozenEncoder:
    """A function from token ids to states, and what the states depend on besides.

    Attributes:
        encode: from `token_ids` and `segment_ids` int32 (k, T) and `padding_mask` bool (k, T) to
            states (k, T, M); those of a text must depend on no other text.
        hidden_dim: M.
        fingerprint: hash of weights, configuration and type of computation: of all that another
            encoder with other states would have otherwise.
        description: what it is, as JSON for people; the same for the same fingerprint.
    """

    encode: Callable[[dict[str, np.ndarray]], np.ndarray]
    hidden_dim: int
    fingerprint: str
    description: dict[str, Any] = field(default_factory=dict)

    def states(self, packed: PackedExamples, rows: np.ndarray) -> np.ndarray:
        """Encodes some texts together.

        Args:
            packed: n texts.
            rows: int (k,), indices of those to encode.

        Returns:
            (tokens of these texts, M), those of one text after those of another, without padding.

        Raises:
            ValueError: `encode` gives another shape, or numbers that are not finite.
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
