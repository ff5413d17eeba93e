"""One training run with one seed: from checked examples to a finished run directory."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert.storage.atomic_directory import atomic_directory
from kbert.training.callbacks.bad_batch import BadBatch, pieces_of
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import Saving, StateSaver, fit_from
from kbert.training.callbacks.step_bar import step_bar
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.distributed.stop_signals import StopSignals, stop_signals
from kbert.training.finetuning.evaluation import AnyPrepared, monitored_metric, prepare
from kbert.training.finetuning.examples import RunData, class_weights, read_run_data
from kbert.training.finetuning.model import build_model, compile_model
from kbert.training.finetuning.reading_evaluation import trained_part, validation_part
from kbert.training.finetuning.report import report_lines, start_report
from kbert.training.resume.resumed_run import (
    changed_data,
    goes_on,
    is_measured,
    kept_run,
    order_of,
    position_in,
    sha256_of_arrays,
    way_on,
)
from kbert.training.runs.environment import environment
from kbert.training.runs.run_directory import (
    CHECKPOINTS,
    ENVIRONMENT,
    LOG,
    METRICS,
    MODEL,
    REPORT,
    check_output,
    run_directory,
    write_config,
    write_json,
)
from kbert.training.runs.run_log import RunLog, tell_stage

# In the folder of a run that is being written, and gone when it is finished.
STATES = "states"
# With the examples they say which batch is the next; and a TPU takes no smaller last one.
_OF_THE_ORDER = ("batch_size", "batch_tokens", "seed")


@dataclass(frozen=True)
class _Ready:
    """All that a run needs before its first step."""

    model: Any
    glue: str | None
    parts: dict[str, AnyPrepared]
    monitor: str
    steps: list[int]
    report: dict[str, Any]
    order: str


def train_once(config: RunConfig, data: RunData | None = None, log: RunLog | None = None) -> Path:
    """Trains with one seed.

    The state is saved now and then. Where a stopped run of the same configuration left states, it
    goes on from the newest one, and batches, dropout and rates are then those that they would have
    been without the stop.

    Args:
        config: The configuration; `seeds` and `grid` are not looked at.
        data: Its examples where they are read already.
        log: Where lines go; by default a log of its own.

    Returns:
        The run directory.

    Raises:
        ValueError: The data or the encoder do not fit, and nothing has been written; or the run to
            go on with is another one.
        FileExistsError: The output is there already.
        FloatingPointError: The loss became infinite or NaN; its batch is in a file.
        TrainingStopped: SIGTERM or Ctrl-C came; the state is saved.
    """
    log = RunLog() if log is None else log
    begin = time.perf_counter()
    resume = goes_on(config)
    check_output(_output(config), config.overwrite, resume)
    with log.listening(), stop_signals(way_on(config)) as stop, _deterministic(config):
        keras.utils.set_random_seed(config.seed)
        ready = _prepared(config, data, log)
        with run_directory(_output(config), config.overwrite, resume) as folder:
            with log.writing(folder / LOG):
                if not is_measured(folder, config, ready.report):
                    write_config(config, folder)
                    write_json(ready.report, folder / REPORT)
                    write_json(environment(), folder / ENVIRONMENT)
                    with stop.deferred():
                        record = _fit(config, ready, folder, log, stop)
                    metrics = _finish(config, ready, record, folder)
                    metrics["seconds"] = time.perf_counter() - begin
                    write_json(metrics, folder / METRICS)
                for name in (STATES, CHECKPOINTS):
                    shutil.rmtree(folder / name, ignore_errors=True)
                log.line(f"finished in {time.perf_counter() - begin:.0f} s: {_output(config)}")
    return Path(_output(config))


def _prepared(config: RunConfig, data: RunData | None, log: RunLog) -> _Ready:
    """Reads, checks and builds all, and tells about it."""
    kept = kept_run(config, log)
    data = read_run_data(config) if data is None else data
    monitor = monitored_metric(config.task, config.monitor, data.labels, data.glue)
    class_weights(config, data)  # its errors belong before the encoder is loaded
    tell_stage(f"loading the encoder {config.encoder or ''}".rstrip())
    model = build_model(config, data)
    tell_stage("tokenizing")
    parts = {name: prepare(model, examples, data.glue) for name, examples in data.parts.items()}
    parts["train"] = trained_part(parts["train"], config)
    inputs = {name: part.input for name, part in parts.items()}
    packed = inputs["train"].packed
    sha256 = sha256_of_arrays(packed.token_ids, packed.lengths, parts["train"].right)
    hashes = {**data.hashes, "data_sha256": sha256}
    if kept is not None:
        changed_data(kept, hashes, config.allow_config_change)
    options = [getattr(config, key) for key in _OF_THE_ORDER]
    order = order_of(sha256, config.strategy == "tpu", *options)
    steps = inputs["train"].steps(config)
    compile_model(model, config, data, sum(steps))
    report = start_report(config, data, model, inputs, steps)
    report |= {**hashes, "warnings": list(log.warnings)}
    log.line(report_lines(report))
    return _Ready(model, data.glue, parts, monitor, steps, report, order)


def _output(config: RunConfig) -> str:
    return config.output or ""


@contextlib.contextmanager
def _deterministic(config: RunConfig) -> Iterator[None]:
    """TensorFlow's switch has no way back, so it stays on for the process."""
    if config.deterministic:
        tf.config.experimental.enable_op_determinism()
    yield


def _fit(
    config: RunConfig, ready: _Ready, folder: Path, log: RunLog, stop: StopSignals
) -> EpochRecord:
    """Trains to the end; the record learns of each epoch and keeps the best weights."""
    model, train = ready.model, ready.parts["train"]
    tokens = int(train.input.lengths.sum())
    validation = validation_part(ready.parts.get("validation"))
    record = EpochRecord(config, validation, ready.monitor, tokens, folder / CHECKPOINTS, log)
    position = position_in(folder / STATES, model, ready.order)
    measured_on = ready.report.get("validation_sha256", "")
    record.restore(position.told, position.batch, position.step, measured_on)
    if position.step:
        log.line(f"goes on after step {position.step}, in epoch {position.epoch + 1}")

    def batches(epoch: int, batch: int) -> Any:
        return train.input.dataset(model, config, train.right, epoch, batch)

    words = {"token_ids": pieces_of(model.tokenizer.vocabulary.tokens)}
    bad_batch = BadBatch(folder, lambda at: batches(at.epoch, at.batch), words)
    callbacks: list[Any] = [record]
    if config.tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(folder / "tensorboard", write_graph=False))
    saving = Saving(folder / STATES, config.save_every, config.keep_states)
    callbacks.append(
        StateSaver(saving, position, told=record.told, stop=stop, bad_batch=bad_batch)
    )
    if not record.is_over(position.epoch):
        with step_bar(position.batch, epochs=config.epochs) as bar:
            fit_from(
                model,
                position,
                config.epochs,
                batches,
                batches=None if config.batch_tokens is None else ready.steps,
                callbacks=[*bar, *callbacks],
                verbose=0,
            )
    return record


def _finish(
    config: RunConfig, ready: _Ready, record: EpochRecord, folder: Path
) -> dict[str, Any]:
    """Puts the kept weights in their place, and measures what was written there."""
    tell_stage("measuring the weights that stay")
    # One may be there of before a stop, and of other weights.
    with atomic_directory(folder / MODEL, overwrite=True) as model_folder:
        shutil.copytree(record.kept, model_folder, dirs_exist_ok=True)
    model = type(ready.model).from_pretrained(folder / MODEL, dtype=config.precision)
    parts = ready.parts
    return {
        "task": config.task,
        "glue": ready.glue,
        "monitor": record.monitor if "validation" in parts else None,
        "kept_epoch": record.best_epoch,
        "final": {
            part: parts[part].measured(model)
            for part in ("validation", "test")
            if part in parts
        },
        "epochs": record.epochs,
    }
