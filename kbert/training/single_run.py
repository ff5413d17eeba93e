"""One training run with one seed: from checked examples to a finished run directory."""

import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert.training.environment import environment
from kbert.training.epoch_record import EpochRecord
from kbert.training.evaluation import AnyPrepared, monitored_metric, prepare
from kbert.training.report import report_lines, start_report
from kbert.training.run_config import RunConfig
from kbert.training.run_data import RunData, class_weights, read_run_data
from kbert.training.run_directory import (
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
from kbert.training.run_log import RunLog
from kbert.training.run_model import build_model, compile_model


def train_once(config: RunConfig, data: RunData | None = None, log: RunLog | None = None) -> Path:
    """Trains with one seed.

    Args:
        config: The configuration; `seeds` and `grid` are not looked at.
        data: Its examples where they are read already.
        log: Where lines go; by default a log of its own.

    Returns:
        The run directory.

    Raises:
        ValueError: The data or the encoder do not fit; nothing has been written then.
        FileExistsError: The output is there already.
        FloatingPointError: The loss became infinite or NaN.
    """
    log = RunLog() if log is None else log
    begin = time.perf_counter()
    check_output(_output(config), config.overwrite)
    with log.listening(), _deterministic(config):
        keras.utils.set_random_seed(config.seed)
        data = read_run_data(config) if data is None else data
        monitor = monitored_metric(config.task, config.monitor, data.labels, data.glue)
        class_weights(config, data)  # its errors belong before the encoder is loaded
        model = build_model(config, data)
        parts = {name: prepare(model, examples, data.glue) for name, examples in data.parts.items()}
        inputs = {name: part.input for name, part in parts.items()}
        steps = inputs["train"].steps(config)
        compile_model(model, config, data, sum(steps))
        report = start_report(config, data, model, inputs, steps)
        report["warnings"] = list(log.warnings)
        log.line(report_lines(report))
        with run_directory(_output(config), config.overwrite) as folder:
            with log.writing(folder / LOG):
                write_config(config, folder)
                write_json(report, folder / REPORT)
                write_json(environment(), folder / ENVIRONMENT)
                record = EpochRecord(
                    config,
                    parts.get("validation"),
                    monitor,
                    int(inputs["train"].lengths.sum()),
                    folder / CHECKPOINTS,
                    log,
                )
                _fit(model, config, parts["train"], record, folder)
                about: dict[str, Any] = {"task": config.task, "glue": data.glue}
                metrics = about | _finish(type(model), record, config, parts, folder)
                metrics["seconds"] = time.perf_counter() - begin
                write_json(metrics, folder / METRICS)
                log.line(f"finished in {metrics['seconds']:.0f} s: {_output(config)}")
    return Path(_output(config))


def _output(config: RunConfig) -> str:
    return config.output or ""


@contextlib.contextmanager
def _deterministic(config: RunConfig) -> Iterator[None]:
    """TensorFlow's switch has no way back, so it stays on for the process."""
    if config.deterministic:
        tf.config.experimental.enable_op_determinism()
    yield


def _fit(
    model: Any, config: RunConfig, train: AnyPrepared, record: EpochRecord, folder: Path
) -> None:
    """Trains; the record learns of each epoch and keeps the best weights."""
    callbacks: list[Any] = [record]
    if config.tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(folder / "tensorboard", write_graph=False))
    # Keras draws its bar on stdout, which is for results.
    with contextlib.redirect_stdout(sys.stderr):
        model.fit(
            train.input.dataset(model, config, train.right),
            epochs=config.epochs,
            callbacks=callbacks,
            verbose=1 if sys.stderr.isatty() else 0,
        )


def _finish(
    pipeline: Any,
    record: EpochRecord,
    config: RunConfig,
    parts: dict[str, AnyPrepared],
    folder: Path,
) -> dict[str, Any]:
    """Puts the kept weights in their place, and measures what was written there."""
    record.kept.rename(folder / MODEL)
    (folder / CHECKPOINTS).rmdir()
    model = pipeline.from_pretrained(folder / MODEL, dtype=config.precision)
    return {
        "monitor": record.monitor if "validation" in parts else None,
        "kept_epoch": record.best_epoch,
        "final": {
            part: parts[part].measured(model)
            for part in ("validation", "test")
            if part in parts
        },
        "epochs": record.epochs,
    }
