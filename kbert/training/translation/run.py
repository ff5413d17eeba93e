"""One run of translation with one seed: from checked pairs to a finished run directory."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import tensorflow as tf

from kbert.storage.atomic_directory import atomic_directory
from kbert.tasks.translation.model import Translator
from kbert.text.subword.subword import Subword
from kbert.training.callbacks.bad_batch import BadBatch, pieces_of
from kbert.training.callbacks.epoch_record import EpochRecord
from kbert.training.callbacks.state_saver import Saving, StateSaver, fit_from
from kbert.training.callbacks.step_bar import step_bar
from kbert.training.config.translation_config import SEARCHED, TranslationConfig
from kbert.training.distributed.stop_signals import StopSignals, stop_signals
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
from kbert.training.translation.evaluation import (
    MeasuredPairs,
    check_language,
    measure_translator,
    searcher_of,
)
from kbert.training.translation.examples import TranslationData, read_translation_data
from kbert.training.translation.inputs import PreparedPairs, check_pairs, prepare_pairs
from kbert.training.translation.model import (
    Built,
    build_translator,
    compile_translator,
    load_warm_start,
)
from kbert.training.translation.report import translation_lines, translation_report
from kbert.training.translation.subwords import run_subwords, write_subwords
from kbert.training.translation.tpu_batches import train_buckets
from kbert.training.translation.weight_average import (
    WeightsKeeper,
    average_weights,
    kept_weights,
    remove_weights_after,
)

# In the folder of a run that is being written, and gone when it is finished.
STATES, EPOCHS = "states", "epochs"
# With the pairs, as they are cut into pieces, they say which batch is the next.
_OF_THE_ORDER = ("batch_tokens", "accumulation_steps", "seed")


@dataclass(frozen=True)
class _Ready:
    """All that a run needs before its first step."""

    data: TranslationData
    subwords: tuple[Subword, Subword]
    built: Built
    parts: dict[str, PreparedPairs]
    report: dict[str, Any]
    order: str


def train_translation(
    config: TranslationConfig, data: TranslationData | None = None, log: RunLog | None = None
) -> Path:
    """Trains a translator with one seed.

    Where a stopped run of the same configuration left states, it goes on from the newest one: the
    state is saved now and then, and batches, dropout and rates are then those that they would have
    been without the stop.

    Args:
        config: The configuration; `seeds` is not looked at.
        data: Its pairs where they are read already.
        log: Where lines go; by default a log of its own.

    Returns:
        The run directory.

    Raises:
        ValueError: Pairs, subwords, sizes or BERT do not fit, and nothing has been written; or the
            run to go on with is another one.
        FileExistsError: The output is there already.
        FloatingPointError: The loss became infinite or NaN; its batch is in a file.
        TrainingStopped: SIGTERM or Ctrl-C came; the state is saved.
    """
    log = RunLog() if log is None else log
    begin = time.perf_counter()
    output, resume = config.output or "", goes_on(config)
    check_output(output, config.overwrite, resume)
    if config.deterministic:  # TensorFlow's switch has no way back
        tf.config.experimental.enable_op_determinism()
    with log.listening(), stop_signals(way_on(config)) as stop:
        keras.utils.set_random_seed(config.seed)
        ready = _prepared(config, data, log)
        with run_directory(output, config.overwrite, resume) as folder:
            with log.writing(folder / LOG):
                if not is_measured(folder, config, ready.report):
                    _write_start(config, ready, folder)
                    with stop.deferred():
                        record = _fit(config, ready, folder, log, stop)
                    metrics = _finish(config, ready, record, folder)
                    metrics["seconds"] = time.perf_counter() - begin
                    write_json(metrics, folder / METRICS)
                _tidy(folder)
                log.line(f"finished in {time.perf_counter() - begin:.0f} s: {output}")
    return Path(output)


def _prepared(config: TranslationConfig, data: TranslationData | None, log: RunLog) -> _Ready:
    """Reads, checks and builds all, and tells about it."""
    kept = kept_run(config, log)
    warm = load_warm_start(config)
    # Its errors belong before the data are read.
    train_buckets(config, None if warm is None else warm.max_source_length)
    data = read_translation_data(config) if data is None else data
    if kept is not None:
        changed_data(kept, data.hashes, config.allow_config_change)
    if config.target_language is not None:
        check_language(config.target_language)
    if warm is None:
        tell_stage("learning subwords" if config.source_subwords is None else "reading subwords")
        subwords = run_subwords(config, data, kept)
    else:
        subwords = warm.source_subwords, warm.target_subwords
    built = build_translator(config, subwords, warm)
    tell_stage("tokenizing")
    longest = built.model.max_source_length - 1
    if config.max_length is not None:
        longest = min(longest, config.max_length)
    limits: dict[str, Any] = {"max_length": longest, "max_ratio": config.max_ratio}
    if data.test is not None:
        # They are tokenized when they are measured, by the model that was written.
        check_pairs(data.test)
    parts = {
        part: prepare_pairs(
            built.model, text, features=config.features, **(limits if part == "train" else {})
        )
        for part, text in data.parts.items()
        if part != "test"
    }
    report = translation_report(config, data, built, parts)
    compile_translator(built.model, config, report["steps_per_epoch"])
    report["warnings"] = list(log.warnings)
    log.line(translation_lines(report, parts))
    order = _order(config, parts["train"], built.model.max_source_length)
    return _Ready(data, subwords, built, parts, report, order)


def _order(config: TranslationConfig, train: PreparedPairs, positions: int) -> str:
    sides = (train.packed.sources, train.packed.targets)
    arrays = [array for side in sides for array in (side.token_ids, side.lengths)]
    options = (getattr(config, key) for key in _OF_THE_ORDER)
    return order_of(sha256_of_arrays(*arrays), train_buckets(config, positions), *options)


def _write_start(config: TranslationConfig, ready: _Ready, folder: Path) -> None:
    write_config(config, folder)
    write_subwords(ready.subwords, folder)
    write_json(ready.report, folder / REPORT)
    write_json(environment(), folder / ENVIRONMENT)


def _fit(
    config: TranslationConfig, ready: _Ready, folder: Path, log: RunLog, stop: StopSignals
) -> EpochRecord:
    """Trains to the end; the record keeps the best weights, or the last ones are kept."""
    model, train = ready.built.model, ready.parts["train"]
    record = EpochRecord(
        config,
        _measured(config, ready),
        config.monitor,
        train.tokens,
        folder / CHECKPOINTS if config.average is None else None,
        log,
    )
    position = position_in(folder / STATES, model, ready.order)
    measured_on = ready.report.get("validation_sha256", "")
    record.restore(position.told, position.batch, position.step, measured_on)
    remove_weights_after(folder / EPOCHS, position.epoch)
    if position.step:
        log.line(f"goes on after {position.step} batches, in epoch {position.epoch + 1}")
    callbacks: list[Any] = [record]
    if config.average is not None:
        callbacks.append(WeightsKeeper(folder / EPOCHS, config.average))
    if config.tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(folder / "tensorboard", write_graph=False))

    def batches(epoch: int, batch: int) -> Any:
        return train.dataset(
            model,
            batch_tokens=config.batch_tokens,
            buckets=train_buckets(config, model.max_source_length),
            accumulation_steps=config.accumulation_steps,
            shuffle=True,
            seed=config.seed,
            first_epoch=epoch,
            first_batch=batch,
        )

    words = {
        f"{side}_token_ids": pieces_of(subwords.pieces)
        for side, subwords in zip(("source", "target"), ready.subwords)
    }
    bad_batch = BadBatch(folder, lambda at: batches(at.epoch, at.batch), words)
    saving = Saving(folder / STATES, config.save_every, config.keep_states)
    # The last one: what the others wrote about an epoch is there when a state says that it is done.
    callbacks.append(
        StateSaver(saving, position, told=record.told, stop=stop, bad_batch=bad_batch)
    )
    if not record.is_over(position.epoch):
        with step_bar(position.batch, epochs=config.epochs) as bar:
            every = [*bar, *callbacks]
            fit_from(model, position, config.epochs, batches, callbacks=every, verbose=0)
    return record


def _measured(config: TranslationConfig, ready: _Ready) -> MeasuredPairs | None:
    """What epochs are measured on, or None."""
    if "validation" not in ready.parts:
        return None
    searcher = None
    if config.monitor in SEARCHED:
        searcher = searcher_of(ready.built.model, config.validation_beam)
    return MeasuredPairs(ready.parts["validation"], searcher)


def _finish(
    config: TranslationConfig, ready: _Ready, record: EpochRecord, folder: Path
) -> dict[str, Any]:
    """Puts the weights that stay in their place, and measures what was written there."""
    tell_stage("measuring the weights that stay")
    averaged = None
    if config.average is not None:
        epochs = kept_weights(folder / EPOCHS)
        averaged = [int(epoch.name.rpartition("-")[2]) for epoch in epochs]
    shutil.rmtree(folder / MODEL, ignore_errors=True)  # of before a stop, and of other weights
    if config.average is None:
        with atomic_directory(folder / MODEL) as model_folder:
            shutil.copytree(record.kept, model_folder, dirs_exist_ok=True)
    else:
        average_weights(ready.built.model, epochs)
        ready.built.model.save_pretrained(folder / MODEL)
    # Scores are those of float32, in which the model is used.
    model = Translator.from_pretrained(folder / MODEL, dtype="float32")
    final = {
        part: measure_translator(model, text, config.target_language, config.features)[0]
        for part, text in ready.data.parts.items()
        if part != "train"
    }
    return {
        "task": config.task,
        "glue": None,
        "monitor": config.monitor if "validation" in final else None,
        "kept_epoch": record.best_epoch if averaged is None else None,
        "averaged_epochs": averaged,
        "final": final,
        "epochs": record.epochs,
    }


def _tidy(folder: Path) -> None:
    """Takes away what only a run that goes on needs."""
    for name in (STATES, EPOCHS, CHECKPOINTS):
        shutil.rmtree(folder / name, ignore_errors=True)
