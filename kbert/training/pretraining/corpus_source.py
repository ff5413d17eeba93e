"""The text of a pretraining run: files are found, checked, and turned into batches."""

import os
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import tensorflow as tf

from kbert.data.pretraining.corpus import Corpus
from kbert.data.pretraining.corpus_cuts import BLOCK_BYTES
from kbert.data.pretraining.dataset import own_errors, pretraining_dataset
from kbert.data.pretraining.examples import ExampleMaker
from kbert.data.pretraining.stream import CorpusPosition, ExampleStream
from kbert.tasks.pretraining.objectives import has_pairs
from kbert.text.wordpiece.wordpiece import WordPiece
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.distributed.collectives import all_gather, own_share
from kbert.training.pretraining.input_files import found_files
from kbert.training.pretraining.record_source import (
    RecordFiles,
    check_records,
    found_records,
    held_out_records,
    record_batches,
)

# The input throughput is measured for about this long, and at least until a first block ends.
_SECONDS, _MOST_BATCHES = 2.0, 1000
# Each of several workers reads blocks of its own, several of them even of a small text.
_BLOCKS_A_WORKER, _LEAST_BLOCK = 8, 256
# Entries of a position; each of several workers has its own.
_PLACE = ("epoch", "window", "example")
Source = Corpus | RecordFiles
_MASKING = ("max_predictions", "masked_share", "whole_words", "ngram")


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
    """Finds the files of a run and checks the beginning of each.

    Raises:
        ValueError: A file is not text, all are empty, or one is in both parts.
        FileNotFoundError: A pattern matches no file.
    """
    key = "text" if config.records is None else "records"
    found: Any = found_files if config.records is None else found_records
    files = found(key, getattr(config, key) or [])
    settings: dict[str, Any] = {
        "separator": config.separator,
        "encoding_errors": config.encoding_errors,
    }
    workers = own_share(config).get("workers", 1)

    def source(files: list[Any]) -> Source:
        if config.records is not None:
            return RecordFiles(tuple(files))
        return Corpus(files, block_bytes=_block_bytes(files, workers), **settings)

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
    return PretrainingText(source(files), source(held_out))


def _block_bytes(files: Sequence[Path], workers: int) -> int:
    """Returns the block size with which each of several workers has some blocks of its own."""
    if workers == 1:
        return BLOCK_BYTES
    size = sum(file.stat().st_size for file in files)
    return max(_LEAST_BLOCK, min(BLOCK_BYTES, size // (workers * _BLOCKS_A_WORKER)))


def check_examples(config: PretrainingConfig, text: PretrainingText, tokenizer: WordPiece) -> None:
    """Makes a first example of each part, since training would fail without one.

    Raises:
        ValueError: A part has no example.
    """
    pairs = has_pairs(config.objective)
    length = config.max_sequence_length
    maker = ExampleMaker(tokenizer, length, config.short_share, pairs)
    for corpus in (text.train, text.validation):
        if isinstance(corpus, RecordFiles):
            check_records(config, corpus, len(tokenizer.vocabulary))
        elif corpus is not None:
            next(ExampleStream(corpus, maker, 1, shuffle=False, epochs=1).batches())


def train_batches(
    config: PretrainingConfig, corpus: Source, tokenizer: WordPiece, place: dict[str, int]
) -> Any:
    """Returns the training batches, without end.

    Args:
        place: The position to begin at, from `place_after`; empty for the beginning.

    Returns:
        A dataset for `place_after`; see `kbert.data.pretraining.dataset`.
    """
    share = own_share(config)
    if isinstance(corpus, RecordFiles):
        return record_batches(config, corpus, place.get("batches", 0), **share)
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
    """Returns the suffix of the names of a worker's numbers in a position."""
    return f" of worker {number}" if number else ""


def next_pass(place: dict[str, int]) -> dict[str, int]:
    """Returns the beginning of the next pass over the text.

    Args:
        place: A position within a pass, from `place_after`.
    """
    if "batches" in place:  # of records, which start again
        return {}
    # The next pass for all workers.
    passes = [number for name, number in place.items() if name.split(" ")[0] == "epoch"]
    return asdict(CorpusPosition(epoch=max(passes, default=-1) + 1))


def input_speed(config: PretrainingConfig, corpus: Source, tokenizer: WordPiece) -> float:
    """Returns the input throughput in tokens per second, padding included, while nothing else runs.

    It is measured from the first byte on, so that all of the work counts; the time of tracing the
    graph counts too, so the throughput of a long training is higher.

    Raises:
        ValueError: The input is not text, or not records.
    """
    begin, cells = time.perf_counter(), 0
    if isinstance(corpus, RecordFiles):
        dataset = record_batches(config, corpus, 0, epochs=1, shuffle=False)
    else:
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
    config: PretrainingConfig, corpus: Source, tokenizer: WordPiece, steps: int | None
) -> Any:
    """Returns the validation batches, the same ones each time.

    Args:
        steps: Number of batches, the first ones; None for all.
    """
    if isinstance(corpus, RecordFiles):
        return held_out_records(config, corpus, steps)
    dataset = _batches(config, corpus, tokenizer, epochs=1, shuffle=False)
    # Keras warns of a dataset that ends without a known cardinality.
    count = sum(1 for _ in islice(dataset.stream.batches(), steps))
    return dataset.take(count).apply(tf.data.experimental.assert_cardinality(count))


def _batches(config: PretrainingConfig, corpus: Corpus, tokenizer: WordPiece, **stream: Any) -> Any:
    masking = {name: getattr(config, name) for name in _MASKING}
    return pretraining_dataset(
        corpus,
        tokenizer,
        max_sequence_length=config.max_sequence_length,
        objective=config.objective,
        short_share=config.short_share,
        seed=config.seed,
        **masking,
        **{"batch_size": config.batch_size, **stream},
    )
