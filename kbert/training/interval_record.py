"""The Keras callback of long trainings without epochs: measured, written down and saved in steps.

To Keras an interval is an epoch of so many steps.
"""

import json
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras

from kbert.storage.atomic_directory import write_atomically
from kbert.training.run_log import RunLog
from kbert.training.train_state import Position, save_state

# Between two lines about the steps inside an interval, where no progress bar can be drawn.
_SECONDS_BETWEEN_LINES = 30.0
_VALIDATION = "val_"


class IntervalRecord(keras.callbacks.Callback):
    """Writes down what each interval brought, and then saves the state of the training.

    What was written down beyond the newest state is forgotten: those steps are done again.

    Args:
        journal: The file with what was written down.
        states: The folder of the states.
        keep: How many states stay.
        tokens_per_step: Cells of a batch, for the speed.
        total_steps: Steps of the whole training.
        log: Where the lines go.

    Attributes:
        intervals: One dict an interval: its last step, metrics and times.
        position: How far the training has come; it may be set before it begins.
        place: Tells, of a number of batches in this call of `fit`, where the data are; to be set
            before each.
    """

    def __init__(
        self,
        journal: Path,
        states: Path,
        keep: int,
        tokens_per_step: int,
        total_steps: int,
        log: RunLog,
    ) -> None:
        super().__init__()
        self.intervals: list[dict[str, Any]] = []
        self.position = Position()
        self.place: Callable[[int], dict[str, int]] = lambda batches: {}
        self._journal = journal
        self._states = states
        self._keep = keep
        self._tokens_per_step = tokens_per_step
        self._total_steps = total_steps
        self._log = log
        self._batches = self._first_step = self._interval_steps = 0
        self._begin = self._last_line = 0.0

    def restore(self, position: Position) -> None:
        """Goes on from a state.

        Args:
            position: From `kbert.training.train_state.load_state`.
        """
        self.position = position
        if self._journal.is_file():
            found = json.loads(self._journal.read_text(encoding="utf-8"))
            self.intervals = [one for one in found if one["step"] <= position.step]

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Counts the batches of this call of `fit` from here on."""
        self._batches, self._first_step = 0, self.position.step

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock."""
        self._interval_steps = 0
        self._begin = self._last_line = time.perf_counter()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts, and writes a line now and then where stderr is no terminal.

        Raises:
            FloatingPointError: The loss is no finite number.
        """
        self._batches += batch + 1 - self._interval_steps
        self._interval_steps = batch + 1
        logs = logs or {}
        step = self._first_step + self._batches
        self._check(logs, step)
        now = time.perf_counter()
        if now - self._last_line < _SECONDS_BETWEEN_LINES or sys.stderr.isatty():
            return
        self._last_line = now
        speed = self._interval_steps / (now - self._begin)
        loss = logs.get("loss", math.nan)
        self._log.line(f"  step {step}: loss {loss:.4f}, {speed:.2f} steps/s")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Writes the interval down, and saves the state.

        Raises:
            FloatingPointError: The loss is no finite number.
        """
        seconds = time.perf_counter() - self._begin
        step = self._first_step + self._batches
        numbers = {name: float(value) for name, value in (logs or {}).items()}
        self._check(numbers, step)
        held_out = {
            name.removeprefix(_VALIDATION): value
            for name, value in numbers.items()
            if name.startswith(_VALIDATION)
        }
        record: dict[str, Any] = {
            "step": step,
            "training": {k: v for k, v in numbers.items() if not k.startswith(_VALIDATION)},
            "seconds": seconds,
            "tokens_per_second": self._interval_steps * self._tokens_per_step / seconds,
        }
        if held_out:
            record["validation"] = held_out
        self.intervals.append(record)
        write_atomically(self._journal, json.dumps(self.intervals))
        self.position = Position(step=step, data=self.place(self._batches))
        save_state(self._states, self.model, self.position, self._keep)
        self._log.line(interval_line(record, self._total_steps))

    @staticmethod
    def _check(logs: dict[str, Any], step: int) -> None:
        loss = float(logs.get("loss", 0.0))
        if not math.isfinite(loss):
            raise FloatingPointError(
                f"the loss must stay finite. Received: {loss} at step {step}. Try a lower "
                "learning_rate; the last state is from before"
            )


def interval_line(record: dict[str, Any], total_steps: int) -> str:
    """One interval in words.

    Args:
        record: Of `IntervalRecord.intervals`.
        total_steps: Steps of the whole training.
    """
    parts = [f"{name} {value:.4f}" for name, value in record["training"].items()]
    parts += [f"validation {k} {v:.4f}" for k, v in record.get("validation", {}).items()]
    return (
        f"step {record['step']}/{total_steps}: {', '.join(parts)}  ({record['seconds']:.1f} s, "
        f"{record['tokens_per_second']:,.0f} tokens/s)"
    )
