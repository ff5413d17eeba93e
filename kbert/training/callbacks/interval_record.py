"""The Keras callback of long trainings without epochs: evaluated, logged and saved by steps.

To Keras an interval is an epoch of a number of steps.
"""

import time
from typing import Any

from kbert.training.callbacks.state_saver import BadBatch, Saving, StateSaver
from kbert.training.runs.run_log import RunLog
from kbert.training.runs.stopped_runs import StopSignals
from kbert.training.runs.train_state import Position


class IntervalRecord(StateSaver):
    """Logs and records the metrics of each interval, and then saves the state of the training.

    Args:
        saving: The folder of states; `every` is the length of an interval.
        tokens_per_step: Positions of a batch, padded ones included, for the throughput.
        total_steps: Steps of the whole training.
        stop: Signals that end the run at the next step, as in `StateSaver`.
        bad_batch: Check of the losses, as in `StateSaver`.
        together: True where several processes save together.

    Attributes:
        intervals: One dict per interval: its last step, metrics and times of training.
        input_speed: Tokens per second of the input alone, to compare with those of training.
    """

    def __init__(
        self,
        saving: Saving,
        tokens_per_step: int,
        total_steps: int,
        log: RunLog,
        stop: StopSignals | None = None,
        bad_batch: BadBatch | None = None,
        together: bool = False,
    ) -> None:
        told = self._so_far
        super().__init__(saving, told=told, stop=stop, bad_batch=bad_batch, together=together)
        self.input_speed: float | None = None
        self._tokens_per_step, self._total_steps, self._log = tokens_per_step, total_steps, log
        self._begin = self._test_begin = 0.0

    def start_at(self, position: Position) -> None:
        """Restores the record of the earlier process too; within an interval `batch` counts."""
        super().start_at(position)
        self.intervals: list[dict[str, Any]] = position.told.get("intervals", [])

    def _so_far(self) -> dict[str, Any]:
        return {"intervals": self.intervals}

    def _is_time(self, seconds: float) -> bool:
        return False  # within an interval only a signal saves

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock."""
        self._begin = time.perf_counter()

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Stops the clock: evaluation within an interval is not training time."""
        self._test_begin = time.perf_counter()

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Resumes the clock."""
        self._begin += time.perf_counter() - self._test_begin

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Logs and records the interval, saves the state, and stops if a signal asks for it."""
        seconds = time.perf_counter() - self._begin
        numbers = {name: float(value) for name, value in (logs or {}).items()}
        val = {k: v for k, v in numbers.items() if k.startswith("val_")}
        steps = self.position.batch - self._before
        record: dict[str, Any] = {
            "step": self.position.step,
            "training": {k: v for k, v in numbers.items() if k not in val},
            "seconds": seconds,
            "tokens_per_second": steps * self._tokens_per_step / seconds,
        }
        if val:
            record["validation"] = {k.removeprefix("val_"): v for k, v in val.items()}
        self.intervals.append(record)
        self._begin_epoch(0)
        self._save()
        self._log.line(interval_line(record, self._total_steps))
        if len(self.intervals) == 1 and self.input_speed is not None:
            times = self.input_speed / record["tokens_per_second"]
            self._log.line(f"  the input pipeline gives {times:.1f} times what the model takes")
        self._stop_if(self._asked())


def interval_line(record: dict[str, Any], total_steps: int) -> str:
    """Formats the log line of an entry of `IntervalRecord.intervals`."""
    parts = [f"{name} {value:.4f}" for name, value in record["training"].items()]
    parts += [f"validation {k} {v:.4f}" for k, v in record.get("validation", {}).items()]
    return (
        f"step {record['step']}/{total_steps}: {', '.join(parts)}  ({record['seconds']:.1f} s, "
        f"{record['tokens_per_second']:,.0f} tokens/s)"
    )
