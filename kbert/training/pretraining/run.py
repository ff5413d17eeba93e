"""One run of pretraining: from files of plain text to a finished run directory."""

import math
import shutil
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.data.pretraining.dataset import own_errors
from kbert.tasks.pretraining.model import MaskedLanguageModel
from kbert.training.callbacks.bad_batch import BadBatch, pieces_of
from kbert.training.callbacks.interval_record import IntervalRecord
from kbert.training.callbacks.running_metrics import RunningMetrics
from kbert.training.callbacks.state_saver import Saving
from kbert.training.callbacks.step_bar import step_bar
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.distributed.stop_signals import StopSignals, stop_signals
from kbert.training.pretraining.corpus_source import (
    PretrainingText,
    check_examples,
    input_speed,
    next_pass,
    place_after,
    read_text,
    train_batches,
    validation_batches,
)
from kbert.training.pretraining.evaluation import measure_pretrained
from kbert.training.pretraining.model import build_pretrained, compile_pretrained
from kbert.training.pretraining.vocabulary import VOCABULARY, run_vocabulary
from kbert.training.resume.placement import own_share, placed
from kbert.training.resume.resumed_run import (
    changed_data,
    goes_on,
    is_measured,
    kept_run,
    order_of,
    position_in,
    way_on,
)
from kbert.training.resume.train_state import Position
from kbert.training.runs.environment import environment
from kbert.training.runs.run_directory import (
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
# With the text they say which example is the next.
_OF_THE_ORDER = (
    *("objective", "max_sequence_length", "short_share", "batch_size", "seed"),
    *("encoder", "vocabulary", "vocabulary_size", "lowercase"),
)


@dataclass(frozen=True)
class _Ready:
    """All that a run needs before its first step."""

    text: PretrainingText
    model: MaskedLanguageModel
    report: dict[str, Any]
    order: str


@placed
def pretrain(config: PretrainingConfig, log: RunLog | None = None) -> Path:
    """Pretrains an encoder on plain text.

    The state is saved every `save_every` steps. Where a stopped run of the same configuration left
    states, it goes on from the newest one, and examples, masks, dropout and rates are then those
    that they would have been without the stop.

    Args:
        config: The configuration.
        log: Where lines go; by default a log of its own.

    Returns:
        The run directory; its model is a `kbert.MaskedLanguageModel`, and an encoder to every other
        task.

    Raises:
        ValueError: Text, vocabulary, sizes or encoder do not fit, and nothing has been written; or
            the run to go on with is another one.
        FileNotFoundError: A file is missing.
        FileExistsError: The output is there already.
        FloatingPointError: The loss became infinite or NaN; its batch is in a file.
        TrainingStopped: SIGTERM or Ctrl-C came; the state is saved.
    """
    log = RunLog() if log is None else log
    begin = time.perf_counter()
    output = config.output or ""
    resume = goes_on(config)
    check_output(output, config.overwrite, resume)
    if config.deterministic:  # TensorFlow's switch has no way back
        tf.config.experimental.enable_op_determinism()
    with log.listening(), stop_signals(way_on(config)) as stop:
        keras.utils.set_random_seed(config.seed)
        ready = _prepared(config, log)
        with run_directory(output, config.overwrite, resume) as folder:
            with log.writing(folder / LOG):
                if not is_measured(folder, config, ready.report):
                    _write_start(config, ready, folder)
                    with stop.deferred():
                        record = _fit(config, ready, folder, log, stop)
                    metrics = _finish(config, ready, record, folder)
                    metrics["seconds"] = time.perf_counter() - begin
                    write_json(metrics, folder / METRICS)
                shutil.rmtree(folder / STATES, ignore_errors=True)
                (folder / VOCABULARY).unlink(missing_ok=True)  # the model has its own
                log.line(f"finished in {time.perf_counter() - begin:.0f} s: {output}")
    return Path(output)


def _prepared(config: PretrainingConfig, log: RunLog) -> _Ready:
    """Reads, checks and builds all, and tells about it."""
    kept = kept_run(config, log)
    text = read_text(config)
    hashes = {"data_sha256": text.train.fingerprint}
    if text.validation is not None:
        hashes["validation_sha256"] = text.validation.fingerprint
    if kept is not None:
        changed_data(kept, hashes, config.allow_config_change)
    if config.vocabulary_size is not None:
        tell_stage("learning the vocabulary")
    vocabulary = run_vocabulary(config, text.train, kept)
    tell_stage("making the model" if config.encoder is None else f"loading {config.encoder}")
    model = build_pretrained(config, vocabulary)
    check_examples(config, text, model.tokenizer)
    compile_pretrained(model, config)
    report: dict[str, Any] = {
        "task": config.task,
        "glue": None,
        "objective": config.objective,
        "text": text.about(),
        **hashes,
        "tokens_per_step": _cells(config),
        "steps": config.steps,
        "warmup_steps": config.warmup,
        "parameters": int(sum(np.prod(v.shape) for v in model.trainable_variables)),
        "vocabulary_size": model.encoder.vocabulary_size,
        "input_tokens_per_second": input_speed(config, text.train, model.tokenizer),
        "warnings": list(log.warnings),
    }
    for part, about in report["text"].items():
        log.line(f"{part}: {about['files']} files, {about['bytes']:,} bytes  ({about['source']})")
    log.line(
        f"parameters: {report['parameters']:,}; steps: {config.steps:,} of {_cells(config):,} "
        f"tokens ({config.warmup:,} of warm-up); input alone: "
        f"{report['input_tokens_per_second']:,.0f} tokens/s"
    )
    return _Ready(text, model, report, _order(config, text))


def _order(config: PretrainingConfig, text: PretrainingText) -> str:
    workers = own_share(config).get("workers", 1)  # each reads its part of the text
    cut = (text.train.fingerprint, getattr(text.train, "block_bytes", None), workers)
    return order_of(*cut, *(getattr(config, key) for key in _OF_THE_ORDER))


def _cells(config: PretrainingConfig) -> int:
    return config.batch_size * config.max_sequence_length


def _write_start(config: PretrainingConfig, ready: _Ready, folder: Path) -> None:
    write_config(config, folder)
    ready.model.tokenizer.vocabulary.save(folder / VOCABULARY)
    write_json(ready.report, folder / REPORT)
    write_json(environment(), folder / ENVIRONMENT)


def _fit(
    config: PretrainingConfig, ready: _Ready, folder: Path, log: RunLog, stop: StopSignals
) -> IntervalRecord:
    """Trains to the end, interval by interval."""
    model, tokenizer = ready.model, ready.model.tokenizer
    words = pieces_of(tokenizer.vocabulary.tokens)

    def batches_from(position: Position) -> Any:
        return train_batches(config, ready.text.train, tokenizer, position.data)

    record = IntervalRecord(
        Saving(folder / STATES, config.save_every, config.keep_states),
        _cells(config),
        config.steps,
        log,
        stop,
        BadBatch(folder, batches_from, dict.fromkeys(("token_ids", "masked_tokens"), words)),
    )
    record.input_speed = ready.report["input_tokens_per_second"]
    position = position_in(folder / STATES, model, ready.order, _at_next_pass)
    # By the interval that it was saved in, and by those of this configuration.
    within = position.batch > 0 and position.step % config.save_every > 0
    record.restore(position if within else replace(position, sums=()))
    if position.step:
        log.line(f"goes on after step {position.step}")
    callbacks: list[Any] = [record]
    if config.tensorboard:
        callbacks.append(keras.callbacks.TensorBoard(folder / "tensorboard", write_graph=False))
    held_out = None
    if ready.text.validation is not None:
        steps = config.validation_steps
        held_out = validation_batches(config, ready.text.validation, tokenizer, steps)
    with step_bar(position.step, steps=config.steps) as bar:
        while record.position.step < config.steps:
            at = record.position.step
            first, end, length = intervals_from(at, config.steps, config.save_every)
            batches = batches_from(record.position)
            record.place = partial(place_after, batches)
            # Batches have no end: calls of more steps would go beyond that of a last, short
            # interval.
            _in_calls_of(model, math.gcd(length, config.steps_per_execution))
            running = [RunningMetrics(record.position.sums)]
            with own_errors(batches):
                model.fit(
                    batches,
                    initial_epoch=first,
                    epochs=end,
                    steps_per_epoch=length,
                    validation_data=held_out,
                    callbacks=[*running, *bar, *callbacks],
                    verbose=0,
                )
    return record


def _at_next_pass(position: Position) -> Position:
    """Where to go on in another order: a place in a pass says nothing of it."""
    return replace(position, data=next_pass(position.data))


def _in_calls_of(model: Any, steps: int) -> None:
    """Lets a compiled model do so many steps a call, in a graph of its own."""
    if model.steps_per_execution != steps:
        model.steps_per_execution = steps
        model.make_train_function(force=True)
        model.make_test_function(force=True)


def intervals_from(step: int, steps: int, every: int) -> tuple[int, int, int]:
    """The intervals of one length that come next; to Keras they are epochs.

    Args:
        step: Steps that are done.
        steps: Steps in all, more than these.
        every: Steps of an interval; the last one may be shorter, and a begun one is.

    Returns:
        Number of the first interval, number behind the last, and their steps.
    """
    first = step // every
    if step % every == 0 and steps - step >= every:
        return first, steps // every, every
    return first, first + 1, min((first + 1) * every, steps) - step


def _finish(
    config: PretrainingConfig, ready: _Ready, record: IntervalRecord, folder: Path
) -> dict[str, Any]:
    """Writes the model, and measures what was written."""
    tell_stage("measuring the weights that stay")
    # One may be there of before a stop, and of other weights.
    shutil.rmtree(folder / MODEL, ignore_errors=True)
    ready.model.save_pretrained(folder / MODEL)
    final = {}
    if ready.text.validation is not None:
        final["validation"] = measure_pretrained(
            folder / MODEL, ready.text.validation, config, config.validation_steps
        )
    return {"task": config.task, "glue": None, "final": final, "intervals": record.intervals}
