"""Writes the batch whose loss is NaN or infinite to a file, for inspection."""

import io
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from kbert.storage.atomic_directory import write_atomically
from kbert.training.resume.train_state import Position

# Maps ids of any shape (..., T) to a text for each row.
Decoder = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class BadBatch:
    """Checks losses, and writes the batch of one that is not finite to a file.

    Batches are computed again: they are a function of their position.

    Attributes:
        folder: The folder of the file.
        batches: Returns the batches from a position on.
        decoders: Name of an input or target -> function from its ids to texts.
    """

    folder: Path
    batches: Callable[[Position], Any]
    decoders: Mapping[str, Decoder] = field(default_factory=dict)

    def check(self, loss: float, before: Position, steps: int = 1) -> None:
        """Checks the loss of a step, or of several steps of one call.

        Args:
            loss: The loss, or the mean loss of the epoch so far.
            before: The position of the training before the step, or the first of them.
            steps: Number of steps. With several it is unknown which one was bad: the batches of
                all are written, each name with the number of its step as prefix.

        Raises:
            FloatingPointError: The loss is NaN or infinite; the message names step and file.
        """
        if math.isfinite(loss):
            return
        first, last = before.step + 1, before.step + steps
        kept = [self._arrays(batch) for batch in islice(self.batches(before), steps)]
        if steps == 1:
            (arrays,) = kept
            named, where, whose = f"step-{last}", f"step {last}", "Its batch is"
        else:
            arrays = {
                f"step-{step}/{name}": array
                for step, one in enumerate(kept, first)
                for name, array in one.items()
            }
            named, where = f"steps-{first}-{last}", f"one of the steps {first} to {last}"
            whose = "Their batches are"
        path = self.folder / f"bad-batch-{named}.npz"
        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        write_atomically(path, file.getvalue())
        raise FloatingPointError(
            f"the loss must stay finite. Received: {loss} at {where}. Try a lower "
            f"learning_rate. {whose} in {path} ({', '.join(kept[0])}); the last state is from "
            "before it"
        )

    def _arrays(self, batch: Any) -> dict[str, Any]:
        """Returns inputs, targets and weights of a batch, and decoded texts."""
        parts = batch if isinstance(batch, tuple) else (batch,)
        arrays: dict[str, Any] = {}
        for name, part in zip(("inputs", "targets", "weights"), parts):
            columns = part if isinstance(part, dict) else {name: part}
            arrays |= {key: np.asarray(column) for key, column in columns.items()}
        texts = {
            f"{name}_text": decode(arrays[name])
            for name, decode in self.decoders.items()
            if name in arrays
        }
        return {**arrays, **texts}


def pieces_of(tokens: Any) -> Decoder:
    """Returns a decoder that joins the tokens of a row with blanks.

    Args:
        tokens: The token of each id, a sequence; ids beyond it are skipped.
    """

    def decode(ids: np.ndarray) -> np.ndarray:
        rows = ids.reshape(-1, ids.shape[-1])
        texts = [" ".join(tokens[i] for i in row if 0 <= i < len(tokens)) for row in rows]
        return np.array(texts, dtype=str).reshape(ids.shape[:-1])

    return decode
