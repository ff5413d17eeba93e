"""Fine-tuning: a task's head on an encoder, trained on labelled examples."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert.metrics.glue_names import GLUE_METRICS
from kbert.storage.atomic_directory import atomic_directory
from kbert.tasks.registry import finetuned_task
from kbert.training.callbacks.bad_batch import pieces_of
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.finetuning.examples import RunData, read_run_data
from kbert.training.finetuning.model import build_model, compile_model
from kbert.training.finetuning.report import report_lines, start_report
from kbert.training.recipes.recipe import EpochRecipe, run_recipe
from kbert.training.resume.resumed_run import changed_data, order_of, sha256_of_arrays
from kbert.training.runs.run_directory import CHECKPOINTS, MODEL
from kbert.training.runs.run_log import RunLog, tell_stage

# With the examples they determine the next batch; a TPU also drops a smaller last one.
_OF_THE_ORDER = ("batch_size", "batch_tokens", "seed")


def train_once(config: RunConfig, data: RunData | None = None, log: RunLog | None = None) -> Path:
    """Fine-tunes with one seed.

    Args:
        config: The configuration; its `seeds` and `grid` are ignored.
        data: Its examples if they were read before.
        log: The log; by default a new one.

    Returns:
        The run directory.

    Raises:
        ValueError, FileNotFoundError, FileExistsError, FloatingPointError, TrainingStopped: See
            `kbert.training.recipes.recipe.run_recipe`.
    """
    return run_recipe(Finetuning(config, data, log))


class Finetuning(EpochRecipe):
    """The recipe of a run on labelled examples."""

    config: RunConfig
    data: RunData | None
    read = staticmethod(read_run_data)
    _glue: str | None
    _parts: dict[str, Any]
    _monitor: str
    _steps: list[int]

    def prepare(self, kept: Path | None) -> None:
        config, log = self.config, self.log
        data = read_run_data(config) if self.data is None else self.data
        self._glue = data.glue
        task = finetuned_task(config.task)
        self._monitor = monitored_metric(config, data)
        # Its errors must come before the encoder is loaded.
        task.class_weights(config, data.train, data.labels)
        tell_stage(f"loading the encoder {config.encoder or ''}".rstrip())
        self.model = build_model(config, data)
        tell_stage("tokenizing")
        parts = {name: task.prepare(self.model, of, data.glue) for name, of in data.parts.items()}
        parts["train"] = parts["train"].trained(config)
        self._parts = parts
        inputs = {name: part.input for name, part in parts.items()}
        packed = inputs["train"].packed
        sha256 = sha256_of_arrays(packed.token_ids, packed.lengths, parts["train"].right)
        hashes = {**data.hashes, "data_sha256": sha256}
        if kept is not None:
            changed_data(kept, hashes, config.allow_config_change)
        options = [getattr(config, key) for key in _OF_THE_ORDER]
        self.order = order_of(sha256, config.strategy == "tpu", *options)
        self._steps = inputs["train"].steps(config)
        compile_model(self.model, config, data, sum(self._steps))
        report = start_report(config, data, self.model, inputs, self._steps)
        self.report = report | {**hashes, "warnings": list(log.warnings)}
        log.line(report_lines(self.report))

    def new_record(self, folder: Path) -> EpochRecord:
        validation = self._parts["validation"].validating if "validation" in self._parts else None
        tokens = int(self._parts["train"].input.lengths.sum())
        kept = folder / CHECKPOINTS
        return EpochRecord(self.config, validation, self._monitor, tokens, kept, self.log)

    def batches(self, epoch: int, batch: int) -> Any:
        train = self._parts["train"]
        return train.input.dataset(self.model, self.config, train.right, epoch, batch)

    def batch_counts(self) -> Sequence[int] | None:
        return None if self.config.batch_tokens is None else self._steps

    def pieces(self) -> Mapping[str, Any]:
        return {"token_ids": pieces_of(self.model.tokenizer.vocabulary.tokens)}

    def finish(self, folder: Path) -> dict[str, Any]:
        record, parts = self.record, self._parts
        # One from before a stop may exist, with other weights.
        with atomic_directory(folder / MODEL, overwrite=True) as model_folder:
            shutil.copytree(record.kept, model_folder, dirs_exist_ok=True)
        model = type(self.model).from_pretrained(folder / MODEL, dtype=self.config.precision)
        held_out = [part for part in ("validation", "test") if part in parts]
        return {
            "task": self.config.task,
            "glue": self._glue,
            "monitor": record.monitor if "validation" in parts else None,
            "kept_epoch": record.best_epoch,
            "final": {part: parts[part].measured(model) for part in held_out},
            "epochs": record.epochs,
        }


def monitored_metric(config: RunConfig, data: RunData) -> str:
    """Returns the metric that the epochs of a run are compared by.

    Args:
        config: The run's configuration.
        data: The run's examples.

    Raises:
        ValueError: The task has no such metric.
    """
    known = finetuned_task(config.task).monitors(data.labels)
    if config.monitor is None:
        return GLUE_METRICS[data.glue][0] if data.glue is not None else known[0]
    if config.monitor not in known:
        raise ValueError(
            f"`monitor` must be one of {', '.join(known)}. Received: monitor={config.monitor!r}"
        )
    return config.monitor
