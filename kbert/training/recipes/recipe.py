"""The runner of all kinds of runs, and the base classes of their recipes."""

import os
import platform
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

import kbert
from kbert.options.configuration import MULTI_WORKER
from kbert.storage.files import atomic_directory
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import BadBatch, Saving, StateSaver, fit_from
from kbert.training.callbacks.step_bar import step_bar
from kbert.training.config.any_config import StoredConfig
from kbert.training.runs import run_directory as runs
from kbert.training.runs.run_directory import tell_stage
from kbert.training.runs.run_log import RunLog
from kbert.training.runs.stopped_runs import (
    StopSignals,
    how_to_resume,
    is_measured,
    kept_run,
    resumes,
    stop_signals,
)
from kbert.training.runs.train_state import Position, position_in

STATES = "states"
PACKAGES = (
    *("tensorflow", "tensorflow-text", "keras", "numpy", "safetensors", "scikit-learn"), "scipy"
)
VARIABLES = ("KERAS_BACKEND", "TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS", "CUDA_VISIBLE_DEVICES")


class Recipe(ABC):
    """The steps of one kind of run; `run_recipe` does the rest.

    `data` are examples that were read before, or None.

    Attributes, set by `prepare` except the last:
        model: The compiled model.
        report: Facts known before the first step, as JSON types; with the hashes of the data,
            under keys that end in "_sha256".
        order: A hash of all that the order of batches depends on.
        leftovers: Names in the run directory that only a resumed run needs.
        seconds_before: Seconds of earlier processes, up to the state that `fit` resumes from.
    """

    model: Any
    report: dict[str, Any]
    order: str
    leftovers: tuple[str, ...] = (STATES,)

    def __init__(self, config: Any, data: Any = None) -> None:
        self.config, self.data, self.log = config, data, RunLog()
        self.seconds_before = 0.0
        self._begin = time.perf_counter()

    def seconds(self) -> float:
        """Returns the seconds of the run so far: of this process, and of those before it."""
        return self.seconds_before + time.perf_counter() - self._begin

    @abstractmethod
    def prepare(self, kept: Path | None) -> None:
        """Reads, checks and builds everything, before anything is written.

        `kept` is the folder of the stopped run that is resumed, or None.
        """

    def write_start(self, folder: Path) -> None:
        """Writes the files of this kind of run besides its configuration and report."""

    @abstractmethod
    def fit(self, folder: Path, stop: StopSignals) -> None:
        """Trains to the end, from the newest state on."""

    @abstractmethod
    def finish(self, folder: Path) -> dict[str, Any]:
        """Writes the model, and returns its metrics."""


def run_recipe(recipe: Recipe) -> Path:
    """Trains with one seed, from checked data to a finished run directory.

    The state is saved regularly. A stopped run of the same configuration is resumed from its newest
    state; batches, dropout and rates are then those of a run that was never stopped. It raises what
    `kbert.training.run.train` raises; what does not fit is a ValueError before anything is written.
    """
    config, log = recipe.config, recipe.log
    begin = time.perf_counter()
    output, resume = config.output or "", resumes(config)
    runs.check_output(output, config.overwrite, resume)
    if config.deterministic:  # TensorFlow cannot disable it again
        tf.config.experimental.enable_op_determinism()
    with log.listening(), stop_signals(how_to_resume(config)) as stop:
        keras.utils.set_random_seed(config.seed)
        recipe.prepare(kept_run(config, log))
        opened = runs.run_directory(output, config.overwrite, resume)
        with opened as folder, log.writing(folder / runs.LOG):
            if not is_measured(folder, config, recipe.report):
                runs.write_config(config, folder)
                recipe.write_start(folder)
                runs.write_json(recipe.report, folder / runs.REPORT)
                runs.write_json(environment(), folder / runs.ENVIRONMENT)
                with stop.deferred():
                    recipe.fit(folder, stop)
                tell_stage("writing the model")
                metrics = recipe.finish(folder)
                metrics["seconds"] = recipe.seconds()
                runs.write_json(metrics, folder / runs.METRICS)
            for path in (folder / name for name in recipe.leftovers):
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)
            log.line(f"finished in {time.perf_counter() - begin:.0f} s: {output}")
    return Path(output)


def tensorboard(config: StoredConfig, folder: Path) -> list[Any]:
    """Returns the TensorBoard callback, if the configuration asks for it."""
    if not config.tensorboard:
        return []
    return [keras.callbacks.TensorBoard(folder / "tensorboard", write_graph=False)]


def held_out(parts: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yields the parts that were not trained on, and tells which of them is measured."""
    for part, examples in parts.items():
        if part != "train":
            tell_stage(f"measuring the model on the {part} examples")
            yield part, examples


class EpochRecipe(Recipe):
    """A run in epochs that are evaluated, and of which the best or the last one is kept.

    `record` is set by `fit`; `glue` is the GLUE task whose official metrics apply, or None.
    """

    record: EpochRecord
    glue: str | None = None
    leftovers: tuple[str, ...] = (STATES, runs.CHECKPOINTS)
    # Function that reads the examples of a configuration.
    read: Callable[..., Any]

    @abstractmethod
    def new_record(self, folder: Path) -> EpochRecord:
        """Returns an empty record of epochs."""

    @abstractmethod
    def batches(self, epoch: int, batch: int) -> Any:
        """Returns the training batches from an epoch, and a batch of it, on; both from 0."""

    @abstractmethod
    def pieces(self) -> Mapping[str, Any]:
        """Returns the decoders of a bad batch: input -> function from its ids to texts."""

    def batch_counts(self) -> Sequence[int] | None:
        """Returns the number of batches of each epoch if epochs differ in length, else None."""
        return None

    def callbacks(self, folder: Path, position: Position) -> list[Any]:
        """Returns callbacks of this kind of run, after the record."""
        return []

    @abstractmethod
    def measured(self, folder: Path) -> dict[str, Any]:
        """Returns the metrics of the held-out parts, by the model that was written to a folder."""

    def write_model(self, folder: Path) -> dict[str, Any]:
        """Writes the model that stays into the run directory, and returns which epoch it is of."""
        # One from before a stop may exist, with other weights.
        with atomic_directory(folder / runs.MODEL, overwrite=True) as model_folder:
            shutil.copytree(self.record.kept, model_folder, dirs_exist_ok=True)
        return {"kept_epoch": self.record.best_epoch}

    def finish(self, folder: Path) -> dict[str, Any]:
        epoch = self.write_model(folder)
        final = self.measured(folder / runs.MODEL)
        if not final:
            self.log.line("not measured: neither --validation nor --test was given")
        monitor = self.record.monitor if "validation" in final else None
        about = {"task": self.config.task, "glue": self.glue, "monitor": monitor, **epoch}
        return {**about, "final": final, "epochs": self.record.epochs}

    def fit(self, folder: Path, stop: StopSignals) -> None:
        config = self.config
        record = self.record = self.new_record(folder)
        position = position_in(folder / STATES, self.model, self.order)
        self.seconds_before = position.seconds
        measured_on = validation_hashes(self.report)
        record.restore(position.told, position.batch, position.step, measured_on)
        own = self.callbacks(folder, position)
        if position.step:
            self.log.line(f"goes on after step {position.step}, in epoch {position.epoch + 1}")
        saving = Saving(folder / STATES, config.save_every, config.keep_states)
        bad_batch = BadBatch(folder, lambda at: self.batches(at.epoch, at.batch), self.pieces())
        if record.is_over(position.epoch):
            return
        together = config.strategy == MULTI_WORKER
        # The last one: a state at the end of an epoch must include what the others recorded of it.
        saver = StateSaver(
            saving, position, told=record.told, stop=stop, bad_batch=bad_batch, together=together
        )
        saver.seconds = self.seconds
        with step_bar(position.batch, epochs=config.epochs, log=self.log) as bar:
            fit_from(
                self.model,
                position,
                config.epochs,
                self.batches,
                batches=self.batch_counts(),
                callbacks=[*bar, record, *own, *tensorboard(config, folder), saver],
                verbose=0,
            )


def validation_hashes(report: Mapping[str, Any]) -> str:
    """Returns the hash of the validation examples of a run's report; of several tasks, all."""
    keys = sorted(key for key in report if key.endswith("validation_sha256"))
    return "".join(report[key] for key in keys)


def environment() -> dict[str, Any]:
    """Returns the versions and the machine as a dict of JSON types."""
    return {
        "kbert": kbert.__version__,
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "processors": len(os.sched_getaffinity(0)),
        "devices": [device.name for device in tf.config.list_physical_devices()],
        "variables": {name: os.environ[name] for name in VARIABLES if name in os.environ},
    }


def _version(package: str) -> str | None:
    with suppress(metadata.PackageNotFoundError):
        return metadata.version(package)
    return None
