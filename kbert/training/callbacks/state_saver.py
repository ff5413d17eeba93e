"""The Keras callback that saves states, checks losses and stops; and `fit` from a state."""

import io
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import keras
import numpy as np

from kbert.storage.files import write_atomically
from kbert.training.distributed.collectives import any_signal, barrier
from kbert.training.runs.stopped_runs import StopSignals, TrainingStopped
from kbert.training.runs.train_state import Position, save_state

# A state at the end of an epoch is cheap to resume from, but short epochs need not each have one.
_SECONDS_BETWEEN_EPOCHS = 30.0

# Maps ids of any shape (..., T) to a text for each row.
Decoder = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class BadBatch:
    """Checks losses, and writes the batch of one that is not finite to a file in `folder`.

    `batches` returns those from a position on, which are computed again; `decoders` maps names of
    inputs and targets to functions from their ids to texts.
    """

    folder: Path
    batches: Callable[[Position], Any]
    decoders: Mapping[str, Decoder] = field(default_factory=dict)

    def check(self, loss: float, before: Position, steps: int = 1) -> None:
        """Checks the loss of a step, or the mean loss of an epoch so far.

        `before` is the position before the first of the `steps` of one call. It is unknown which of
        several was bad: the batches of all are written, each name with its step as prefix.

        Raises:
            FloatingPointError: The loss is NaN or infinite; the message names step and file.
        """
        if math.isfinite(loss):
            return
        first, last = before.step + 1, before.step + steps
        kept = [self._arrays(batch) for batch in islice(self.batches(before), steps)]
        arrays, named, where, whose = kept[0], f"step-{last}", f"step {last}", "Its batch is"
        if steps > 1:
            numbered = enumerate(kept, first)
            arrays = {f"step-{n}/{name}": a for n, one in numbered for name, a in one.items()}
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
        known = {name: decode for name, decode in self.decoders.items() if name in arrays}
        return arrays | {f"{name}_text": decode(arrays[name]) for name, decode in known.items()}


def pieces_of(tokens: Sequence[str]) -> Decoder:
    """Returns a decoder that joins the tokens of a row with blanks; other ids are skipped."""

    def decode(ids: np.ndarray) -> np.ndarray:
        rows = ids.reshape(-1, ids.shape[-1])
        texts = [" ".join(tokens[i] for i in row if 0 <= i < len(tokens)) for row in rows]
        return np.array(texts, dtype=str).reshape(ids.shape[:-1])

    return decode


def steps_done(batch: int, params: Mapping[str, Any] | None) -> int:
    """Returns the finished steps of the running epoch; Keras counts a short last call as whole."""
    return min(batch + 1, (params or {}).get("steps") or batch + 1)


@dataclass(frozen=True)
class Saving:
    """Folder and schedule of saved states; the newest `keep` stay.

    Attributes:
        every: Steps between two states; None saves every `seconds`. Where several steps are one
            call, a state is saved at the end of the call with the last of these steps.
        seconds: Time between two states; half a minute, if less, at the end of an epoch.
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
        start: The position where the training begins or is resumed.
        told: Returns the metrics so far, for the states.
        stop: The signals that the process has received.
        bad_batch: Checks the losses; None checks none.
        together: Whether other workers train too: all of them stop at the same step.

    Attributes:
        position: The progress of the training.
        place: Returns the position in the data after so many batches of this call of `fit`.
        seconds: Returns the seconds that the run has taken so far.
    """

    def __init__(
        self,
        saving: Saving,
        start: Position | None = None,
        *,
        told: Callable[[], dict[str, Any]] = dict,
        stop: StopSignals | None = None,
        bad_batch: BadBatch | None = None,
        together: bool = False,
    ) -> None:
        super().__init__()
        self.place: Callable[[int], dict[str, int]] = lambda batches: {}
        self.seconds: Callable[[], float] = float
        self._saving, self._told = saving, told
        self._stop, self._together = stop, together
        self._bad_batch = bad_batch
        self._last = time.monotonic()
        self.start_at(start or Position())

    def start_at(self, position: Position) -> None:
        """Sets the position where the training begins or is resumed."""
        self.position = position
        self._before = position.batch  # of the resumed epoch, by an earlier process
        # At the last state, and when this call of `fit` began.
        self._saved = self._first = position.step

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Begins to count the batches of this call of `fit`."""
        self._first = self.position.step

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts the steps of a call, checks the loss, and saves or stops if it is time."""
        at, steps = self.position, (self.params or {}).get("steps")
        done = self._before + steps_done(batch, self.params)
        loss = float((logs or {}).get("loss", 0.0))
        if self._bad_batch is not None and not math.isfinite(loss):
            self._bad_batch.check(loss, self._now(), done - at.batch)
        self.position = Position(at.step + done - at.batch, at.epoch, done, order=at.order)
        if steps is not None and batch + 1 >= steps:
            return  # the state is saved after the evaluation of the epoch
        self._save_or_stop(self._is_time(self._saving.seconds))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Begins the next epoch, and saves or stops if it is time."""
        self._begin_epoch(epoch + 1)
        self._save_or_stop(self._is_time(min(self._saving.seconds, _SECONDS_BETWEEN_EPOCHS)))

    def _begin_epoch(self, epoch: int) -> None:
        self.position = replace(self.position, epoch=epoch, batch=0)
        self._before = 0

    def _is_time(self, seconds: float) -> bool:
        """Returns whether to save; with `every` by the step, so that workers save together."""
        if self._saving.every is None:
            return time.monotonic() - self._last >= seconds
        return self.position.step // self._saving.every > self._saved // self._saving.every

    def _now(self) -> Position:
        data = self.place(self.position.step - self._first)
        return replace(self.position, data=data, told=self._told(), seconds=self.seconds())

    def _save(self) -> None:
        self.position = self._now()
        save_state(self._saving.folder, self.model, self.position, self._saving.keep)
        self._last, self._saved = time.monotonic(), self.position.step

    def _save_or_stop(self, is_time: bool) -> None:
        """Saves if it is time or a signal has come, after which the training ends."""
        asked = self._asked()
        if is_time or asked is not None:
            self._save()
        self._stop_if(asked)

    def _asked(self) -> str | None:
        """Returns the signal that this process, or another worker, has received."""
        received = None if self._stop is None else self._stop.received
        return any_signal(received) if self._together else received

    def _stop_if(self, asked: str | None) -> None:
        if asked is None or self._stop is None:
            return
        if self._together:
            barrier()
        step = self.position.step
        raise TrainingStopped(f"stopped by {asked} after step {step}. {self._stop.how_to_resume}")


class RunningMetrics(keras.callbacks.Callback):
    """Restores the metrics of a resumed epoch from a saved state; Keras would reset them.

    Metrics consist of sums over batches. The saved sums are added to zeros before the first batch,
    where the metrics have their variables by then; else after the first batch, to its sums, which
    is equivalent. (A call of several steps always has them: see
    `kbert.pipelines.replication`.) It must be the first callback.
    """

    def __init__(self, sums: Sequence[np.ndarray]) -> None:
        super().__init__()
        self._sums = list(sums)

    def on_train_batch_begin(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the sums before the first batch, if all metrics have their variables."""
        if len(self.model.metrics_variables) == len(self._sums):
            self.on_train_batch_end(batch)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Adds the sums after the first batch, if they were not added before."""
        for variable, before in zip(self.model.metrics_variables, self._sums):
            variable.assign_add(before.reshape(variable.shape))
        self._sums = []


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
    """Trains a compiled model that has the state of a position, from there on.

    `dataset` returns the batches from an epoch and a batch of it on. `batches` are the batches of
    each epoch, where they may differ: Keras would assume the number of the first epoch for all.
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
