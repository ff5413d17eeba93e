"""The progress bar of a training: on stderr, where that is a terminal."""

import math
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import keras
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from kbert.training.callbacks.running_metrics import steps_done
from kbert.training.runs.run_log import tell_stage

# The bar moves with the steps, and the time left is counted down between them.
_DRAWN_A_SECOND = 4


def draws_bar() -> bool:
    """Returns whether stderr is a terminal on which a line can be redrawn."""
    return sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


@contextmanager
def step_bar(done: int, epochs: int | None = None, steps: int | None = None) -> Iterator[list[Any]]:
    """Draws a bar while the block trains, and removes it at the end of the block, also on errors.

    Text written to `sys.stderr` meanwhile appears above the bar.

    Args:
        done: Steps that an earlier process did: of the resumed epoch, or of all `steps`.
        epochs: Number of epochs, for a training in epochs; each has a bar.
        steps: Number of steps, for a training in intervals, which has one bar.

    Yields:
        The Keras callbacks that move the bar, to be put first; none where it is not drawn.
    """
    tell_stage("compiling the first step")
    if not draws_bar():
        yield []
        return
    columns = (
        SpinnerColumn(),  # the first step takes long, and moves nothing else
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Speed(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    with Progress(
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
        progress: The bar.
        done: Steps that an earlier process did: of the resumed epoch, or of all `steps`.
        epochs: Number of epochs, for a training in epochs; each has a bar.
        steps: Number of steps, for a training in intervals, which has one bar.
    """

    def __init__(
        self, progress: Progress, done: int, epochs: int | None = None, steps: int | None = None
    ) -> None:
        super().__init__()
        self._progress = progress
        self._epochs = epochs
        self._steps = steps
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


class _Speed(ProgressColumn):
    """Column of the bar: steps per second, or seconds per step for slow steps."""

    def render(self, task: Task) -> Text:
        speed = task.speed
        if not speed:
            return Text("")
        return Text(f"{speed:.1f} steps/s" if speed >= 1 else f"{1 / speed:.1f} s/step")
