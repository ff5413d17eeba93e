"""The Keras callback that saves the state of a training in epochs, and the `fit` that goes on."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import keras

from kbert.training.callbacks.bad_batch import BadBatch
from kbert.training.callbacks.running_metrics import RunningMetrics, steps_done
from kbert.training.distributed.collectives import any_signal, barrier
from kbert.training.distributed.stop_signals import StopSignals, TrainingStopped
from kbert.training.resume.train_state import Position, save_state

# At the end of an epoch a state is cheap to go on from, but short epochs need not each have one.
_SECONDS_BETWEEN_EPOCHS = 30.0


@dataclass(frozen=True)
class Saving:
    """Where and when states are saved.

    Attributes:
        folder: Where they lie.
        every: Steps between two of them; None: as `seconds` says. Where several steps are one call,
            the end of the call that does the last of these.
        keep: How many stay, the newest ones.
        seconds: Time between two of them. The end of an epoch has one of its own if half a minute
            has gone by, or as many seconds as these where they are fewer.
    """

    folder: Path
    every: int | None = None
    keep: int = 2
    seconds: float = 300.0


class StateSaver(keras.callbacks.Callback):
    """Saves the state of a training now and then, and when the process is asked to stop.

    It must be the last callback: what the others tell of an epoch is then in the state that says
    that the epoch is done.

    Args:
        saving: Where and when.
        start: Where the training goes on.
        told: Gives what was measured so far, for the states.
        stop: What was asked of the process.
        bad_batch: Looks at losses; None looks at none.
    """

    def __init__(
        self,
        saving: Saving,
        start: Position | None = None,
        *,
        told: Callable[[], dict[str, Any]] = dict,
        stop: StopSignals | None = None,
        bad_batch: BadBatch | None = None,
    ) -> None:
        super().__init__()
        self._saving = saving
        self._position = start or Position()
        # Of the epoch that goes on, the batches that an earlier process did.
        self._before = self._position.batch
        # Where the steps are counted from until the next state.
        self._saved = self._position.step
        self._told = told
        self._stop = stop
        self._bad_batch = bad_batch
        self._last = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the steps of a call, and saves if it is time.

        Raises:
            FloatingPointError: The loss is no finite number.
            TrainingStopped: Somebody asked for it; the state is saved.
        """
        at, steps = self._position, (self.params or {}).get("steps")
        done = self._before + steps_done(batch, self.params)
        new = done - at.batch
        if self._bad_batch is not None:
            self._bad_batch.check(float((logs or {}).get("loss", 0.0)), at, new)
        self._position = Position(at.step + new, at.epoch, done, order=at.order)
        if steps is not None and batch + 1 >= steps:
            return  # the epoch is yet to be measured; then it is saved
        self._save_if(self._is_time(self._saving.seconds))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begins the next epoch, and saves if it is time.

        Raises:
            TrainingStopped: Somebody asked for it; the state is saved.
        """
        self._position = replace(self._position, epoch=epoch + 1, batch=0)
        self._before = 0
        self._save_if(self._is_time(min(self._saving.seconds, _SECONDS_BETWEEN_EPOCHS)))

    def _is_time(self, seconds: float) -> bool:
        """By the count of steps where it is given: workers save together."""
        if self._saving.every is None:
            return time.monotonic() - self._last >= seconds
        return self._position.step // self._saving.every > self._saved // self._saving.every

    def _save_if(self, is_time: bool) -> None:
        stop = self._stop
        asked = None if stop is None else any_signal(stop.received)
        if not is_time and asked is None:
            return
        save_state(
            self._saving.folder,
            self.model,
            replace(self._position, told=self._told()),
            self._saving.keep,
        )
        self._last, self._saved = time.monotonic(), self._position.step
        if stop is not None and asked is not None:
            barrier()
            step = self._position.step
            raise TrainingStopped(f"stopped by {asked} after step {step}. {stop.way_on}")


def fit_from(
    model: Any,
    position: Position,
    epochs: int,
    dataset: Callable[[int, int], Any],
    *,
    batches: Sequence[int] | None = None,
    callbacks: Sequence[Any] = (),
    **kwargs: Any,
) -> None:
    """Trains a model from a position on.

    Args:
        model: A compiled model, with the state of the position.
        position: From `kbert.training.resume.train_state.load_state`, or the beginning.
        epochs: Epochs in all.
        dataset: Gives the batches from an epoch and a batch of it on, see
            `kbert.data.batches.dataset.batched_dataset`.
        batches: Batches of each epoch, where they may differ: Keras would take the number of the
            first for that of all.
        callbacks: As of the model's `fit`.
        **kwargs: Further arguments of `fit`.
    """
    begin, done = position.epoch, position.batch
    while begin < epochs:
        # What was begun goes by itself: Keras would take its rest for the length of all.
        is_one = done > 0 or batches is not None
        end = begin + 1 if is_one else epochs
        size = None if batches is None else batches[begin] - done
        before = [RunningMetrics(position.sums)] if done else []
        model.fit(
            dataset(begin, done),
            initial_epoch=begin,
            epochs=end,
            steps_per_epoch=size,
            callbacks=[*before, *callbacks],
            **kwargs,
        )
        if model.stop_training:  # Keras' next `fit` would forget it
            return
        begin, done = end, 0
