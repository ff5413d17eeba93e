"""Pretraining of an encoder on plain text, in intervals of steps."""

import math
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from kbert.data.pretraining.dataset import own_errors
from kbert.data.pretraining.examples import PACKINGS
from kbert.options.configuration import MULTI_WORKER
from kbert.storage.files import write_atomically
from kbert.training.callbacks.interval_record import IntervalRecord
from kbert.training.callbacks.state_saver import BadBatch, RunningMetrics, Saving, pieces_of
from kbert.training.callbacks.step_bar import step_bar
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.distributed.collectives import own_share
from kbert.training.pretraining import model as models
from kbert.training.pretraining import sources
from kbert.training.recipes.recipe import STATES, Recipe, tensorboard
from kbert.training.runs.run_directory import MODEL, tell_stage
from kbert.training.runs.stopped_runs import StopSignals, changed_data
from kbert.training.runs.train_state import Position, order_of, position_in

# With the text they determine the next example.
_OF_THE_ORDER = (
    *("objective", "max_sequence_length", "short_share", "batch_size", "seed"),
    *("encoder", "vocabulary", "vocabulary_size", "lowercase"),
)


class Pretraining(Recipe):
    """The recipe of a run on plain text.

    Its model is a `kbert.MaskedLanguageModel`, which every other task can use as encoder.
    """

    config: PretrainingConfig
    _text: sources.PretrainingText
    _record: IntervalRecord

    def prepare(self, kept: Path | None) -> None:
        config = self.config
        text = self._text = sources.read_text(config)
        hashes = {"data_sha256": text.train.fingerprint}
        if text.validation is not None:
            hashes["validation_sha256"] = text.validation.fingerprint
        if kept is not None:
            changed_data(kept, hashes, config.allow_config_change)
        if config.vocabulary_size is not None:
            tell_stage("learning the vocabulary")
        tokenizer = models.run_tokenizer(config, text.train, kept)
        tell_stage("making the model" if config.encoder is None else f"loading {config.encoder}")
        self.model = models.build_pretrained(config, tokenizer)
        # The model has a vocabulary of its own.
        self.leftovers = (STATES, *self.model.tokenizer.files())
        sources.check_examples(config, text, self.model.tokenizer)
        models.compile_pretrained(self.model, config)
        self.order = _order(config, text)
        report = self.report = self._start_report(hashes)
        for part, of in report["text"].items():
            about = f"{of['files']} files, {of['bytes']:,} bytes  ({of['source']})"
            self.log.line(f"{part}: {about}")
        self.log.line(
            f"parameters: {report['parameters']:,}; steps: {config.steps:,} of "
            f"{self._tokens_per_step:,} tokens ({config.warmup:,} of warm-up); input "
            f"pipeline: up to {report['input_tokens_per_second']:,.0f} tokens/s"
        )

    def _start_report(self, hashes: dict[str, str]) -> dict[str, Any]:
        config = self.config
        speed = sources.input_speed(config, self._text.train, self.model.tokenizer)
        return {
            "task": config.task,
            "glue": None,
            "objective": config.objective,
            "text": self._text.about(),
            **hashes,
            "tokens_per_step": self._tokens_per_step,
            "steps": config.steps,
            "warmup_steps": config.warmup,
            "parameters": int(sum(np.prod(v.shape) for v in self.model.trainable_variables)),
            "vocabulary_size": self.model.encoder.vocabulary_size,
            "input_tokens_per_second": speed,
            "warnings": list(self.log.warnings),
        }

    @property
    def _tokens_per_step(self) -> int:
        return self.config.batch_size * self.config.max_sequence_length

    def write_start(self, folder: Path) -> None:
        # The vocabulary, by which a stopped run is known to have begun, comes behind its merges.
        for name, content in reversed(self.model.tokenizer.files().items()):
            write_atomically(folder / name, content)

    def _batches(self, position: Position) -> Any:
        text, tokenizer = self._text.train, self.model.tokenizer
        return sources.train_batches(self.config, text, tokenizer, position.data)

    def fit(self, folder: Path, stop: StopSignals) -> None:
        config, model = self.config, self.model
        words = pieces_of(model.tokenizer.vocabulary.tokens)
        saving = Saving(folder / STATES, config.save_every, config.keep_states)
        pieces = dict.fromkeys(("token_ids", "masked_tokens"), words)
        bad_batch = BadBatch(folder, self._batches, pieces)
        tokens, together = self._tokens_per_step, config.strategy == MULTI_WORKER
        record = self._record = IntervalRecord(
            saving, tokens, config.steps, self.log, stop, bad_batch, together
        )
        record.seconds = self.seconds
        record.input_speed = self.report["input_tokens_per_second"]
        position = position_in(folder / STATES, model, self.order, _at_next_pass)
        self.seconds_before = position.seconds
        # Both by the interval in which it was saved, and by those of this configuration.
        within = position.batch > 0 and position.step % config.save_every > 0
        record.start_at(position if within else replace(position, sums=()))
        if position.step:
            self.log.line(f"goes on after step {position.step}")
        text, steps, held_out = self._text.validation, config.validation_steps, None
        if text is not None:
            held_out = sources.validation_batches(config, text, model.tokenizer, steps)
        with step_bar(position.step, steps=config.steps, log=self.log) as bar:
            # The record last: it may end the training, which the others must have heard of.
            callbacks = [*bar, *tensorboard(config, folder), record]
            while record.position.step < config.steps:
                self._fit_intervals(callbacks, held_out)

    def _fit_intervals(self, callbacks: list[Any], held_out: Any) -> None:
        """Calls Keras' `fit` once, over intervals of one length."""
        config, model, record = self.config, self.model, self._record
        at = record.position.step
        first, end, length = intervals_from(at, config.steps, config.save_every)
        batches = self._batches(record.position)
        record.place = partial(sources.place_after, batches)
        # Batches have no end: calls of more steps would run past the end of a last, short interval.
        _in_calls_of(model, math.gcd(length, config.steps_per_execution))
        with own_errors(batches):
            model.fit(
                batches,
                initial_epoch=first,
                epochs=end,
                steps_per_epoch=length,
                validation_data=held_out,
                callbacks=[RunningMetrics(record.position.sums), *callbacks],
                verbose=0,
            )

    def finish(self, folder: Path) -> dict[str, Any]:
        config, text = self.config, self._text.validation
        # One from before a stop may exist, with other weights.
        shutil.rmtree(folder / MODEL, ignore_errors=True)
        self.model.save_pretrained(folder / MODEL)
        final, steps = {}, config.validation_steps
        if text is not None:
            tell_stage("measuring the model on the validation text")
            final["validation"] = models.measure_pretrained(folder / MODEL, text, config, steps)
        intervals = self._record.intervals
        return {"task": config.task, "glue": None, "final": final, "intervals": intervals}


def _order(config: PretrainingConfig, text: sources.PretrainingText) -> str:
    workers = own_share(config).get("workers", 1)  # each reads its part of the text
    cut = (text.train.fingerprint, getattr(text.train, "block_bytes", None), workers)
    # Runs from before there was a choice have no such entry.
    packing = () if config.packing == PACKINGS[0] else (config.packing,)
    options = {key: getattr(config, key) for key in _OF_THE_ORDER}
    if config.encoder is not None:  # however its folder is spelled, as that of a chain may be
        options["encoder"] = Path(config.encoder).name
    return order_of(*cut, *options.values(), *packing)


def _at_next_pass(position: Position) -> Position:
    """Returns the next pass, for another order: a position within a pass has no meaning there."""
    return replace(position, data=sources.next_pass(position.data))


def _in_calls_of(model: Any, steps: int) -> None:
    """Sets the steps per call of a compiled model, which gets a new graph."""
    if model.steps_per_execution != steps:
        model.steps_per_execution = steps
        model.make_train_function(force=True)
        model.make_test_function(force=True)


def intervals_from(step: int, steps: int, every: int) -> tuple[int, int, int]:
    """Returns the next intervals of one length, which are epochs to Keras.

    They are the index of the first, the index after the last, and their number of steps. An
    interval has `every` steps; the last one may be shorter, and a resumed one is.
    """
    first = step // every
    if step % every == 0 and steps - step >= every:
        return first, steps // every, every
    return first, first + 1, min((first + 1) * every, steps) - step
