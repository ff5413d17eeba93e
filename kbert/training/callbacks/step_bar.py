"""The progress of a training: a bar on stderr where that is a terminal, else lines in the log."""

import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
from rich import progress as rich_progress
from rich.console import Console
from rich.text import Text

from kbert.training.callbacks.state_saver import steps_done
from kbert.training.runs.run_directory import tell_stage
from kbert.training.runs.run_log import RunLog

# Between two log lines within an epoch, where no bar can be drawn.
_SECONDS_BETWEEN_LINES = 30.0
# The bar moves with the steps, and the time left is counted down between them.
_DRAWN_A_SECOND = 4


def draws_bar() -> bool:
    """Returns whether stderr is a terminal on which a line can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


@contextmanager
def step_bar(
    done: int, epochs: int | None = None, steps: int | None = None, log: RunLog | None = None
) -> Iterator[list[Any]]:
    """Draws a bar while the block trains, and removes it at the end of the block, also on errors.

    Text written to `sys.stderr` meanwhile appears above the bar. Where no bar can be drawn, the log
    gets a line every 30 seconds. For `done`, `epochs` and `steps` see `StepBar`. Yields the Keras
    callbacks that show the steps, to be put first.
    """
    tell_stage("compiling the first step")
    if not draws_bar():
        yield [] if log is None else [StepLines(log, done, in_intervals=steps is not None)]
        return
    columns = (
        rich_progress.SpinnerColumn(),  # the first step takes long, and moves nothing else
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.MofNCompleteColumn(),
        _Speed(),
        rich_progress.TimeRemainingColumn(),
        rich_progress.TextColumn("{task.fields[loss]}"),
    )
    with rich_progress.Progress(
        *columns,
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        refresh_per_second=_DRAWN_A_SECOND,
        # The mean over the epoch without its first call, which is compiled.
        speed_estimate_period=math.inf,
    ) as progress:
        yield [StepBar(progress, done, epochs, steps)]


class StepBar(keras.callbacks.Callback):
    """Moves a bar with the steps of a training.

    Args:
        done: Steps that an earlier process did: of the resumed epoch, or of all `steps`.
        epochs: Number of epochs, for a training in epochs; each has a bar.
        steps: Number of steps, for a training in intervals, which has one bar.
    """

    def __init__(
        self,
        progress: rich_progress.Progress,
        done: int,
        epochs: int | None = None,
        steps: int | None = None,
    ) -> None:
        super().__init__()
        self._progress, self._epochs, self._steps = progress, epochs, steps
        # Steps before this call of `fit`, and of it.
        self._before, self._done = done, 0
        self._title = "training"
        self._task = progress.add_task(self._title, total=steps, completed=done, loss="")

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts a bar; that of a training in intervals continues."""
        if self._steps is not None:
            return
        self._title = f"epoch {epoch + 1}/{self._epochs}"
        size = (self.params or {}).get("steps")
        self._progress.reset(
            self._task,
            total=None if size is None else self._before + size,
            completed=self._before,
            description=self._title,
            loss="",
        )

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Moves the bar by the steps of a call."""
        self._done = steps_done(batch, self.params)
        loss = (logs or {}).get("loss")
        self._progress.update(
            self._task,
            completed=self._before + self._done,
            loss="" if loss is None else f"loss {float(loss):.4f}",
        )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Labels the bar as measuring, since evaluation and saving take time."""
        if self._steps is None:
            self._before = 0
            self._progress.update(self._task, description=f"measuring {self._title}")
        else:
            self._before += self._done
        self._done = 0

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Labels the bar as measuring within `fit`."""
        self._progress.update(self._task, description="measuring")

    def on_test_end(self, logs: dict[str, Any] | None = None) -> None:
        """Restores the label of training."""
        self._progress.update(self._task, description=self._title)


class StepLines(keras.callbacks.Callback):
    """Logs loss and speed every 30 seconds within an epoch or interval.

    Steps are counted on from the `done` ones of an earlier process: in intervals all of them, else
    those of each epoch.
    """

    def __init__(self, log: RunLog, done: int = 0, in_intervals: bool = False) -> None:
        super().__init__()
        self._log, self._done, self._in_intervals = log, done, in_intervals
        self._begin = self._last = 0.0

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock."""
        self._begin = self._last = time.perf_counter()
        self._before = self._done

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Logs a line if it is time."""
        done, now = steps_done(batch, self.params), time.perf_counter()
        self._done = self._before + done
        if now - self._last < _SECONDS_BETWEEN_LINES:
            return
        self._last = now
        loss, speed = float((logs or {}).get("loss", math.nan)), done / (now - self._begin)
        self._log.line(f"  step {self._done}: loss {loss:.4f}, {speed:.2f} steps/s")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begins to count again, where epochs are counted by themselves."""
        if not self._in_intervals:
            self._done = 0


class _Speed(rich_progress.ProgressColumn):
    """Column of the bar: steps per second, or seconds per step for slow steps."""

    def render(self, task: rich_progress.Task) -> Text:
        speed = task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} steps/s" if speed >= 1 else f"{1 / speed:.1f} s/step")
