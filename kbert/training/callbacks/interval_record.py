"""The Keras callback of long trainings without epochs: evaluated, logged and saved by steps.

To Keras an interval is an epoch of a number of steps.
"""

import math
import time
from collections.abc import Callable
from typing import Any

import keras

from kbert.training.callbacks.bad_batch import BadBatch
from kbert.training.callbacks.running_metrics import steps_done
from kbert.training.callbacks.state_saver import Saving
from kbert.training.callbacks.step_bar import draws_bar
from kbert.training.distributed.collectives import any_signal, barrier
from kbert.training.distributed.stop_signals import StopSignals, TrainingStopped
from kbert.training.resume.train_state import Position, save_state
from kbert.training.runs.run_log import RunLog

# Between two log lines within an interval, where no progress bar can be drawn.
_SECONDS_BETWEEN_LINES = 30.0
_VALIDATION = "val_"


class IntervalRecord(keras.callbacks.Callback):
    """Logs and records the metrics of each interval, and then saves the state of the training.

    Args:
        saving: The folder of states; `every` is the length of an interval.
        tokens_per_step: Positions of a batch, padded ones included, for the throughput.
        total_steps: Steps of the whole training.
        log: The log of the run.
        stop: The signals that the process has received.
        bad_batch: Checks the losses; None checks none.

    Attributes:
        intervals: One dict per interval: its last step, metrics and times of training.
        position: The progress of the training; it may be set before it begins.
        input_speed: Tokens per second of the input alone, to compare with those of training.
        place: Returns the position in the data after a number of batches of this call of `fit`;
            to be set before each call.
    """

    def __init__(
        self,
        saving: Saving,
        tokens_per_step: int,
        total_steps: int,
        log: RunLog,
        stop: StopSignals | None = None,
        bad_batch: BadBatch | None = None,
    ) -> None:
        super().__init__()
        self.intervals: list[dict[str, Any]] = []
        self.position = Position()
        self.input_speed: float | None = None
        self.place: Callable[[int], dict[str, int]] = lambda batches: {}
        self._saving = saving
        self._tokens_per_step = tokens_per_step
        self._total_steps = total_steps
        self._log = log
        self._stop = stop
        self._bad_batch = bad_batch
        self._batches = self._first_step = self._interval_steps = 0
        self._begin = self._last_line = self._test_begin = 0.0

    def restore(self, position: Position) -> None:
        """Restores the record from a state.

        Args:
            position: From `kbert.training.resume.train_state.load_state`.
        """
        self.position = position
        self.intervals = position.told.get("intervals", [])

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Starts counting the batches of this call of `fit`."""
        self._batches, self._first_step = 0, self.position.step

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock."""
        self._interval_steps = 0
        self._begin = self._last_line = time.perf_counter()

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Stops the clock: evaluation within an interval is not training time."""
        self._test_begin = time.perf_counter()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Resumes the clock."""
        self._begin += time.perf_counter() - self._test_begin

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the steps of a call; where no bar is drawn, logs a line every 30 seconds.

        Raises:
            FloatingPointError: The loss is NaN or infinite.
            TrainingStopped: A signal has asked for it; the state is saved.
        """
        logs = logs or {}
        loss = float(logs.get("loss", 0.0))
        done = steps_done(batch, self.params)
        new = done - self._interval_steps
        if self._bad_batch is not None and not math.isfinite(loss):
            self._bad_batch.check(loss, self._now(), new)
        self._batches += new
        self._interval_steps = done
        step = self._first_step + self._batches
        if done < ((self.params or {}).get("steps") or 0):
            self._stop_if_asked()
        now = time.perf_counter()
        if now - self._last_line < _SECONDS_BETWEEN_LINES or draws_bar():
            return
        self._last_line = now
        speed = self._interval_steps / (now - self._begin)
        self._log.line(f"  step {step}: loss {loss:.4f}, {speed:.2f} steps/s")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Logs and records the interval, and saves the state.

        Raises:
            TrainingStopped: A signal has asked for it; the state is saved.
        """
        seconds = time.perf_counter() - self._begin
        step = self._first_step + self._batches
        numbers = {name: float(value) for name, value in (logs or {}).items()}
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
        self._interval_steps = 0  # the metrics now hold values of the held-out text
        self._save()
        self._log.line(interval_line(record, self._total_steps))
        if len(self.intervals) == 1 and self.input_speed is not None:
            times = self.input_speed / record["tokens_per_second"]
            self._log.line(f"  the input alone gives {times:.1f} times what the model takes")
        self._stop_if_asked()

    def _now(self) -> Position:
        """Returns the current position; within an interval `batch` counts its steps."""
        step, data = self._first_step + self._batches, self.place(self._batches)
        told = {"intervals": self.intervals}
        return Position(step, 0, self._interval_steps, data, told, self.position.order)

    def _save(self) -> None:
        self.position = self._now()
        save_state(self._saving.folder, self.model, self.position, self._saving.keep)

    def _stop_if_asked(self) -> None:
        asked = None if self._stop is None else any_signal(self._stop.received)
        if self._stop is None or asked is None:
            return
        if self.position.step < self._first_step + self._batches:
            self._save()
        barrier()
        where = f"stopped by {asked} after step {self.position.step}"
        raise TrainingStopped(f"{where}. {self._stop.way_on}")


def interval_line(record: dict[str, Any], total_steps: int) -> str:
    """Formats the log line of an interval.

    Args:
        record: An entry of `IntervalRecord.intervals`.
        total_steps: Steps of the whole training.
    """
    parts = [f"{name} {value:.4f}" for name, value in record["training"].items()]
    parts += [f"validation {k} {v:.4f}" for k, v in record.get("validation", {}).items()]
    return (
        f"step {record['step']}/{total_steps}: {', '.join(parts)}  ({record['seconds']:.1f} s, "
        f"{record['tokens_per_second']:,.0f} tokens/s)"
    )
