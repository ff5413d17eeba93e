"""The text of a pretraining run: files are found, checked, and turned into batches.

It is plain text, or examples that were made of it before: TFRecords, which may be in a bucket.
"""

import hashlib
import os
import posixpath
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.corpus_cuts import BLOCK_BYTES
from kbert.data.pretraining.dataset import own_errors, pretraining_dataset
from kbert.data.pretraining.examples import ExampleMaker
from kbert.data.pretraining.records_dataset import records_dataset
from kbert.data.pretraining.stream import CorpusPosition, ExampleStream
from kbert.tasks.pretraining.objectives import has_pairs
from kbert.text.tokenizer import Tokenizer
from kbert.training.config.pretraining_config import (
    ELSEWHERE,
    PretrainingConfig,
    found_files,
    no_file,
)
from kbert.training.distributed.collectives import all_gather, own_share

# The input throughput is measured for about this long, and at least until a first block ends.
_SECONDS, _MOST_BATCHES = 2.0, 1000
# Each of several workers reads blocks of its own, several of them even of a small text.
_BLOCKS_A_WORKER, _LEAST_BLOCK = 8, 256
# Entries of a position; each of several workers has its own.
_PLACE = ("epoch", "window", "example")
_MASKING = ("max_predictions", "masked_share", "whole_words", "ngram")


@dataclass(frozen=True)
class RecordFiles:
    """Files in the layout of google-research/bert, on this machine or where `tf.io.gfile` reads."""

    files: tuple[str, ...]

    @property
    def size(self) -> int:
        """Total size of the files in bytes."""
        return sum(map(_size, self.files))

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the names and sizes of the files."""
        names = [f"{posixpath.basename(file)}:{_size(file)}" for file in self.files]
        return hashlib.sha256("\0".join(names).encode("utf-8", "replace")).hexdigest()

    def __str__(self) -> str:
        more = f" and {len(self.files) - 1} more" if len(self.files) > 1 else ""
        return f"{self.files[0]}{more}"


def _size(file: str) -> int:
    return int(tf.io.gfile.stat(file).length)


Source = Corpus | RecordFiles


@dataclass(frozen=True)
class PretrainingText:
    """The text of a run, to train on and to evaluate on."""

    train: Source
    validation: Source | None

    def about(self) -> dict[str, Any]:
        """Returns the entries of a report, as JSON types."""
        parts = {"train": self.train, "validation": self.validation}
        return {
            name: {
                "files": len(source.files),
                "bytes": source.size,
                "sha256": source.fingerprint,
                "source": str(source),
            }
            for name, source in parts.items()
            if source is not None
        }


def read_text(config: PretrainingConfig) -> PretrainingText:
    """Finds the files of a run, checks the beginning of each, and that no file is in both parts."""
    key = "text" if config.records is None else "records"
    found: Any = found_files if config.records is None else found_records
    files = found(key, getattr(config, key) or [])
    workers = own_share(config).get("workers", 1)

    def source(files: list[Any], key: str = key) -> Source:
        if config.records is not None:
            return RecordFiles(tuple(files))
        block = _block_bytes(files, workers)
        return Corpus(files, config.separator, block, config.encoding_errors, key)

    if config.validation is None:
        return PretrainingText(source(files), None)
    held_out = found("validation", config.validation)
    learned = {os.path.realpath(file) for file in files}
    both = [file for file in held_out if os.path.realpath(file) in learned]
    if both:
        raise ValueError(
            f"`validation` must be other files than `{key}`: what was learned says nothing. "
            f"Received in both: {both[0]}"
        )
    return PretrainingText(source(files), source(held_out, "validation"))


def found_records(key: str, patterns: Sequence[str]) -> list[str]:
    """Returns the files that match names and patterns, each once; errors as of `found_files`.

    Those with a "://" are for `tf.io.gfile`, in a bucket for example: names, or patterns with `*`
    and `?` within a folder; an OSError if it cannot be reached. The others are for `found_files`.
    """
    found: dict[str, None] = {}
    for pattern in patterns:
        if ELSEWHERE not in pattern:
            found.update(dict.fromkeys(map(str, found_files(key, [pattern]))))
            continue
        try:
            is_name = tf.io.gfile.exists(pattern)
            names = [pattern] if is_name else sorted(tf.io.gfile.glob(pattern))
            files = [name for name in names if not tf.io.gfile.isdir(name)]
        except tf.errors.OpError as error:
            raise OSError(
                f"`{key}` must be in places that can be reached. Received: {pattern!r}. "
                f"{' '.join(error.message.split())}"
            ) from error
        if not files:
            raise no_file(key, pattern)
        found.update(dict.fromkeys(files))
    return list(found)


def _block_bytes(files: Sequence[Path], workers: int) -> int:
    """Returns the block size with which each of several workers has some blocks of its own."""
    if workers == 1:
        return BLOCK_BYTES
    size = sum(file.stat().st_size for file in files)
    return max(_LEAST_BLOCK, min(BLOCK_BYTES, size // (workers * _BLOCKS_A_WORKER)))


def check_examples(config: PretrainingConfig, text: PretrainingText, tokenizer: Tokenizer) -> None:
    """Makes a first example of each part, since training would fail without one (a ValueError)."""
    pairs = has_pairs(config.objective)
    length = config.max_sequence_length
    maker = ExampleMaker(tokenizer, length, config.short_share, pairs, config.packing)
    for corpus in (text.train, text.validation):
        if isinstance(corpus, RecordFiles):
            check_records(config, corpus, tokenizer)
        elif corpus is not None:
            next(ExampleStream(corpus, maker, 1, shuffle=False, epochs=1).batches())


def check_records(config: PretrainingConfig, records: RecordFiles, tokenizer: Tokenizer) -> None:
    """Checks that the first records have the run's length and ids of its vocabulary."""
    dataset = _batches(config, records, tokenizer, epochs=1, shuffle=False)
    with own_errors(dataset):
        token_ids = next(iter(dataset))[0]["token_ids"].numpy()
    length, largest = token_ids.shape[1], int(np.max(token_ids))
    if length != config.max_sequence_length:
        raise ValueError(
            f"`max_sequence_length` must be that of the records in {records}, {length}. Received: "
            f"max_sequence_length={config.max_sequence_length}"
        )
    vocabulary_size = len(tokenizer.vocabulary)
    if largest >= vocabulary_size:
        raise ValueError(
            f"The records in {records} must be made with the model's vocabulary of "
            f"{vocabulary_size} tokens. Received: the id {largest}"
        )


def train_batches(
    config: PretrainingConfig, corpus: Source, tokenizer: Tokenizer, place: dict[str, int]
) -> Any:
    """Returns the training batches without end, from a position of `place_after` on."""
    share = own_share(config)
    if isinstance(corpus, RecordFiles):
        first = place.get("batches", 0)
        dataset = _batches(config, corpus, tokenizer, first_batch=first, **share)
        dataset.first_batch = first
        return dataset
    number = share.get("worker", 0)
    own = {name: place.get(f"{name}{_of_worker(number)}", place.get(name, 0)) for name in _PLACE}
    return _batches(config, corpus, tokenizer, first_position=CorpusPosition(**own), **share)


def place_after(dataset: Any, batches: int) -> dict[str, int]:
    """Returns the position of a dataset after a number of batches, for `train_batches`."""
    if hasattr(dataset, "first_batch"):  # of records; all workers are equally far
        return {"batches": dataset.first_batch + batches}
    own = asdict(dataset.stream.position(batches))
    return {
        f"{name}{_of_worker(number)}": value
        for number, values in enumerate(all_gather([own[name] for name in _PLACE]))
        for name, value in zip(_PLACE, values)
    }


def _of_worker(number: int) -> str:
    return f" of worker {number}" if number else ""


def next_pass(place: dict[str, int]) -> dict[str, int]:
    """Returns the beginning of the next pass over the text, for a place within a pass."""
    if "batches" in place:  # of records, which start again
        return {}
    # The next pass for all workers.
    passes = [number for name, number in place.items() if name.split(" ")[0] == "epoch"]
    return asdict(CorpusPosition(epoch=max(passes, default=-1) + 1))


def input_speed(config: PretrainingConfig, corpus: Source, tokenizer: Tokenizer) -> float:
    """Returns the input throughput in tokens per second, padding included, while nothing else runs.

    It is measured from the first byte on, so that all of the work counts; the time of tracing the
    graph counts too, so the throughput of a long training is higher.
    """
    begin, cells = time.perf_counter(), 0
    dataset = _batches(config, corpus, tokenizer, epochs=1, shuffle=False)
    with own_errors(dataset):
        for number, (inputs, _) in enumerate(dataset.take(_MOST_BATCHES), 1):
            cells += int(tf.size(inputs["token_ids"]))
            # All examples of a block are made before its first batch.
            is_whole = isinstance(corpus, RecordFiles) or dataset.stream.position(number).window
            if is_whole and time.perf_counter() - begin > _SECONDS:
                break
    return cells / (time.perf_counter() - begin)


def validation_batches(
    config: PretrainingConfig, corpus: Source, tokenizer: Tokenizer, steps: int | None
) -> Any:
    """Returns the first `steps` validation batches, the same ones each time; None for all."""
    dataset = _batches(config, corpus, tokenizer, epochs=1, shuffle=False)
    # Keras warns of a dataset that ends without a known cardinality.
    with own_errors(dataset):
        each = dataset if isinstance(corpus, RecordFiles) else dataset.stream.batches()
        count = sum(1 for _ in islice(each, steps))
    return dataset.take(count).apply(tf.data.experimental.assert_cardinality(count))


def _batches(config: PretrainingConfig, corpus: Source, tokenizer: Tokenizer, **own: Any) -> Any:
    """Returns the batches of text or records; `own` are options that override the run's."""
    options = {"batch_size": config.batch_size, "seed": config.seed, **own}
    if isinstance(corpus, RecordFiles):
        return records_dataset(corpus.files, next_sentence=has_pairs(config.objective), **options)
    return pretraining_dataset(
        corpus,
        tokenizer,
        max_sequence_length=config.max_sequence_length,
        objective=config.objective,
        short_share=config.short_share,
        packing=config.packing,
        **{name: getattr(config, name) for name in _MASKING},
        **options,
    )
