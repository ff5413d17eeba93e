"""The Keras callback that evaluates each epoch, keeps the best weights and stops early."""

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import keras

from kbert.metrics.glue import NotFiniteError
from kbert.tasks.registry import finetuned_tasks
from kbert.training.callbacks.state_saver import steps_done
from kbert.training.config.any_config import AnyConfig
from kbert.training.distributed.collectives import all_gather
from kbert.training.runs.run_log import RunLog
from kbert.training.runs.train_state import check_finite

# The loss of training, which has the same name in all tasks.
LOSS = "loss"
# Entries of a state: on finished epochs, and on the running one.
_TOLD = ("epochs", "best_epoch", "best_value")
_SECONDS = "epoch_seconds"
_MEASURED_ON = "measured_on"


def losses() -> tuple[str, ...]:
    """Returns the names of the loss among metrics: that of training, and those of the tasks."""
    return (LOSS, *dict.fromkeys(name for task in finetuned_tasks() for name in task.falling))


def is_better(metric: str, found: Mapping[str, Any], best: Mapping[str, Any] | None) -> bool:
    """Returns whether metrics are better than the best so far; the loss breaks ties of `metric`.

    For a tie of both, or of the metric without a loss, it is False: the earlier one stays.
    """
    if best is None:
        return True
    if found[metric] != best[metric]:
        falls = metric == "perplexity" or metric in losses()
        return bool((found[metric] < best[metric]) == falls)
    loss = next((name for name in losses() if name in found and name in best), None)
    return loss is not None and bool(found[loss] < best[loss])


def numbers(metrics: dict[str, Any]) -> dict[str, float]:
    """Returns the metrics that are single numbers."""
    return {name: value for name, value in metrics.items() if isinstance(value, (int, float))}


class Measuring(Protocol):
    """Examples that a model can be evaluated on."""

    def measured(self, model: Any) -> dict[str, Any]:
        """Returns the metrics of a model."""


class EpochRecord(keras.callbacks.Callback):
    """Evaluates the validation examples after each epoch, and logs and records the metrics.

    Args:
        validation: The validation examples, or None.
        monitor: The metric that epochs are compared by.
        tokens: Real tokens of an epoch of training, or of each.
        folder: Folder of the best epoch's weights, in kbert's format; None keeps none.

    Attributes:
        epochs: One dict per epoch: its losses, metrics and times.
        best_epoch: Number of the epoch whose weights are kept, from 1.
        best_value: Its value of the monitored metric; None without validation examples.
    """

    def __init__(
        self,
        config: AnyConfig,
        validation: Measuring | None,
        monitor: str,
        tokens: int | Sequence[int],
        folder: Path | None,
        log: RunLog,
    ) -> None:
        super().__init__()
        self.epochs: list[dict[str, Any]] = []
        self.best_epoch = 0
        self.best_value: float | None = None
        self.monitor = monitor
        self._config, self._log, self._folder = config, log, folder
        self._validation, self._tokens = validation, tokens
        self._begin: float | None = None
        # Seconds that an earlier process spent on the resumed epoch.
        self._seconds_before = 0.0
        self._step = self._done = 0  # in all, and of this `fit` in the running epoch
        self._measured_on = ""
        self._compiles = True  # in the first epoch of a process

    def _tokens_of(self, epoch: int) -> int:
        return self._tokens if isinstance(self._tokens, int) else self._tokens[epoch]

    @property
    def kept(self) -> Path:
        """The folder of the kept weights."""
        if self._folder is None:
            raise ValueError("`folder` must be given for weights to be kept. Received: None")
        return self._folder / f"epoch-{self.best_epoch}"

    def told(self) -> dict[str, Any]:
        """Returns the record so far as JSON types, from which `restore` resumes."""
        told = {name: getattr(self, name) for name in _TOLD}
        return told | {_SECONDS: self._seconds(), _MEASURED_ON: self._measured_on}

    def restore(
        self, told: Mapping[str, Any], batch: int = 0, step: int = 0, measured_on: str = ""
    ) -> None:
        """Restores the record of an earlier process.

        Its best epoch stays the best only for the same validation examples, and with its value of
        this record's metric.
        """
        for name in _TOLD:
            setattr(self, name, told.get(name, getattr(self, name)))
        if self.best_value is not None:
            same = told.get(_MEASURED_ON) == measured_on
            best = self._validation_of(self.best_epoch) if same else {}
            self.best_value = best.get(self.monitor)
        self._step, self._measured_on = step, measured_on
        self._seconds_before = told.get(_SECONDS, 0.0) if batch else 0.0
        if self._folder is None:
            return
        # Weights that are not in the state are of an epoch that will be repeated; where it was the
        # best one, those of the best before it are gone.
        for folder in self._folder.glob("epoch-*") if self._folder.is_dir() else ():
            if folder != self.kept:
                shutil.rmtree(folder)
        if not self.kept.is_dir():
            self.best_epoch, self.best_value = 0, None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Starts the clock."""
        self._begin = time.perf_counter()
        self._done = 0

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Counts steps."""
        done = steps_done(batch, self.params)
        self._step, self._done = self._step + done - self._done, done

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Evaluates the epoch, keeps its weights if it is the best, and may end the training.

        Raises:
            FloatingPointError: The loss, a weight or a prediction is NaN or infinite.
        """
        logs = {} if logs is None else logs
        seconds = self._seconds()
        self._begin, self._seconds_before = None, 0.0
        training = {name: float(value) for name, value in logs.items()}
        if not math.isfinite(training["loss"]):
            raise FloatingPointError(
                f"the loss must stay finite. Received: {training['loss']} in epoch {epoch + 1}. "
                f"{self._advice()}"
            )
        # The loss is from before the last step, which may have ruined them.
        check_finite({f"model/{v.path}": v for v in self.model.variables}, self._step)
        record: dict[str, Any] = {
            "epoch": epoch + 1,
            "training": training,
            "seconds": seconds,
            "tokens_per_second": self._tokens_of(epoch) / seconds,
        }
        if self._validation is not None:
            record["validation"] = self._measured(self._validation)
            # For callbacks after this one, such as TensorBoard's.
            logs.update({f"val_{name}": value for name, value in record["validation"].items()})
        self.epochs.append(record)
        self._keep(epoch + 1, record)
        is_best = self.best_epoch == epoch + 1
        self._log.line(_epoch_line(record, self._config.epochs, is_best, self._compiles))
        self._compiles = False
        if self._ends_after(epoch + 1):
            self.model.stop_training = True
            if epoch + 1 < self._config.epochs:
                patience = self._config.early_stopping
                self._log.line(f"stopped early: no better {self.monitor} for {patience} epochs")

    def is_over(self, done: int) -> bool:
        """Returns whether there was no new best epoch for as long as early stopping allows."""
        patience = self._config.early_stopping
        # Where a stop lost the weights of the best epoch, or nothing can be compared with it any
        # more, there must be a new best epoch first.
        if patience is None or self.best_value is None:
            return False
        return done - self.best_epoch >= patience

    def _ends_after(self, done: int) -> bool:
        """Returns whether the training stops early: of several workers the first decides."""
        if self._config.early_stopping is None:
            return False
        # Each measures by itself, not to the same bits: one that stopped alone would leave the
        # others waiting in their next step.
        return bool(all_gather([int(self.is_over(done))])[0][0])

    def _measured(self, validation: Measuring) -> dict[str, float]:
        try:
            found = numbers(validation.measured(self.model))
        except NotFiniteError as error:  # the labels were checked before: it is the predictions
            raise FloatingPointError(self._overflow(str(error))) from error
        for name, value in found.items():
            if not math.isfinite(value):
                raise FloatingPointError(self._overflow(f"a validation {name} of {value}"))
        return found

    def _overflow(self, received: str) -> str:
        return (
            f"what the model predicts must stay finite. Received after step {self._step}: "
            f"{received}. {self._advice()}"
        )

    def _advice(self) -> str:
        rate = self._config.learning_rate
        return "Try a lower learning_rate" + ("" if rate is None else f" than {rate}")

    def _validation_of(self, epoch: int) -> dict[str, float]:
        """Returns the validation metrics of a finished epoch; empty if it was not evaluated."""
        return next((dict(e.get("validation", {})) for e in self.epochs if e["epoch"] == epoch), {})

    def _seconds(self) -> float:
        """Returns the seconds of the running epoch so far; 0 between epochs."""
        now = time.perf_counter()
        return self._seconds_before + (0.0 if self._begin is None else now - self._begin)

    def _keep(self, epoch: int, record: dict[str, Any]) -> None:
        """Writes the weights of an epoch that is the best so far, and removes the previous ones."""
        value = record.get("validation", {}).get(self.monitor)
        choosing = self._config.keep == "best" and value is not None
        best = None if self.best_value is None else self._validation_of(self.best_epoch)
        if choosing and not is_better(self.monitor, record["validation"], best):
            return
        before = self.best_epoch
        self.best_epoch, self.best_value = epoch, value
        if self._folder is None:
            return
        # Without a choice only the last epoch counts, but a stopped run should leave weights.
        shutil.rmtree(self.kept, ignore_errors=True)  # of an epoch that is repeated
        self.model.save_pretrained(self.kept)
        if before != epoch:
            shutil.rmtree(self._folder / f"epoch-{before}", ignore_errors=True)


def _epoch_line(record: dict[str, Any], epochs: int, kept: bool, compiles: bool) -> str:
    parts = [f"loss {record['training']['loss']:.4f}"]
    measured = record.get("validation", {})
    # Training has a loss too; the other metrics are those of validation alone.
    names = {"loss": "validation loss"}
    parts += [f"{names.get(name, name)} {value:.4f}" for name, value in measured.items()]
    mark = ", kept" if kept and measured else ""
    compiling = " with compiling" if compiles else ""
    return (
        f"epoch {record['epoch']}/{epochs}: {', '.join(parts)}  "
        f"({record['seconds']:.1f} s{compiling}, "
        f"{record['tokens_per_second']:,.0f} tokens/s){mark}"
    )
