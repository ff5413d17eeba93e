"""The Keras callback that saves the state of a training in epochs, and `fit` from a state."""

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

# A state at the end of an epoch is cheap to resume from, but short epochs need not each have one.
_SECONDS_BETWEEN_EPOCHS = 30.0


@dataclass(frozen=True)
class Saving:
    """Folder and schedule of saved states.

    Attributes:
        folder: The folder of the states.
        every: Steps between two states; None saves every `seconds`. Where several steps are one
            call, a state is saved at the end of the call with the last of these steps.
        keep: Number of states to keep, the newest ones.
        seconds: Time between two states. At the end of an epoch a state is saved if half a minute
            has passed since the last one, or this time where it is shorter.
    """

    folder: Path
    every: int | None = None
    keep: int = 2
    seconds: float = 300.0


class StateSaver(keras.callbacks.Callback):
    """Saves the state of a training regularly, and when the process is asked to stop.

    It must be the last callback: the state at the end of an epoch then includes what the others
    recorded of it.

    Args:
        saving: Folder and schedule.
        start: The position where the training begins or is resumed.
        told: Returns the metrics so far, for the states.
        stop: The signals that the process has received.
        bad_batch: Checks the losses; None checks none.
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
        # Batches of the resumed epoch that an earlier process did.
        self._before = self._position.batch
        # The step of the last state.
        self._saved = self._position.step
        self._told = told
        self._stop = stop
        self._bad_batch = bad_batch
        self._last = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the steps of a call, and saves if it is time.

        Raises:
            FloatingPointError: The loss is NaN or infinite.
            TrainingStopped: A signal has asked for it; the state is saved.
        """
        at, steps = self._position, (self.params or {}).get("steps")
        done = self._before + steps_done(batch, self.params)
        new = done - at.batch
        if self._bad_batch is not None:
            self._bad_batch.check(float((logs or {}).get("loss", 0.0)), at, new)
        self._position = Position(at.step + new, at.epoch, done, order=at.order)
        if steps is not None and batch + 1 >= steps:
            return  # the state is saved after the evaluation of the epoch
        self._save_if(self._is_time(self._saving.seconds))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begins the next epoch, and saves if it is time.

        Raises:
            TrainingStopped: A signal has asked for it; the state is saved.
        """
        self._position = replace(self._position, epoch=epoch + 1, batch=0)
        self._before = 0
        self._save_if(self._is_time(min(self._saving.seconds, _SECONDS_BETWEEN_EPOCHS)))

    def _is_time(self, seconds: float) -> bool:
        """Returns whether to save; with `every` by the step, so that workers save together."""
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
        epochs: Number of epochs in all.
        dataset: Returns the batches from an epoch and a batch of it on, see
            `kbert.data.batches.dataset.batched_dataset`.
        batches: Batches of each epoch, where they may differ: Keras would assume the number of
            the first epoch for all.
        callbacks: Keras callbacks for `fit`.
        **kwargs: Further arguments of `fit`.
    """
    begin, done = position.epoch, position.batch
    while begin < epochs:
        # A resumed epoch has a `fit` of its own: Keras would assume its remaining length for all.
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
