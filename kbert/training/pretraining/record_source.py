"""TFRecords as the input of a pretraining run, found by names and patterns, also in a bucket."""

import hashlib
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.pretraining.dataset import own_errors
from kbert.data.pretraining.records_dataset import records_dataset
from kbert.tasks.pretraining.objectives import has_pairs
from kbert.training.config.pretraining_config import PretrainingConfig
from kbert.training.pretraining.input_files import ELSEWHERE, found_files, no_file


@dataclass(frozen=True)
class RecordFiles:
    """Files in the layout of google-research/bert; see `kbert.data.pretraining.records_dataset`.

    Attributes:
        files: Their names, on this machine or anywhere that `tf.io.gfile` reads.
    """

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


def record_batches(
    config: PretrainingConfig, records: RecordFiles, first_batch: int, **options: Any
) -> Any:
    """Returns the training batches, without end.

    Args:
        **options: Options that override the run's, such as `worker`, `workers` and `batch_size` of
            one of several workers; see `kbert.data.pretraining.records_dataset`.
    """
    dataset = _batches(config, records, first_batch=first_batch, **options)
    dataset.first_batch = first_batch
    return dataset


def held_out_records(config: PretrainingConfig, records: RecordFiles, steps: int | None) -> Any:
    """Returns the validation batches, the same ones each time.

    Args:
        steps: Number of batches, the first ones; None for all.
    """
    dataset = _batches(config, records, epochs=1, shuffle=False)
    # Keras warns of a dataset that ends without a known cardinality.
    with own_errors(dataset):
        count = sum(1 for _ in islice(dataset, steps))
    return dataset.take(count).apply(tf.data.experimental.assert_cardinality(count))


def check_records(config: PretrainingConfig, records: RecordFiles, vocabulary_size: int) -> None:
    """Checks that the model can read the first records.

    Raises:
        ValueError: They have another length, or ids of another vocabulary; or one is damaged.
    """
    dataset = _batches(config, records, epochs=1, shuffle=False)
    with own_errors(dataset):
        token_ids = next(iter(dataset))[0]["token_ids"].numpy()
    length, largest = token_ids.shape[1], int(np.max(token_ids))
    if length != config.max_sequence_length:
        raise ValueError(
            f"`max_sequence_length` must be that of the records in {records}, {length}. Received: "
            f"max_sequence_length={config.max_sequence_length}"
        )
    if largest >= vocabulary_size:
        raise ValueError(
            f"The records in {records} must be made with the model's vocabulary of "
            f"{vocabulary_size} tokens. Received: the id {largest}"
        )


def _batches(config: PretrainingConfig, records: RecordFiles, **arguments: Any) -> Any:
    return records_dataset(
        records.files,
        next_sentence=has_pairs(config.objective),
        seed=config.seed,
        **{"batch_size": config.batch_size, **arguments},
    )


def found_records(key: str, patterns: Sequence[str]) -> list[str]:
    """Returns the TFRecords that match names and patterns, each once.

    Args:
        patterns: Names or patterns for `found_files`; or, with a "://" in them, for `tf.io.gfile`,
            in a bucket for example: names, or patterns with `*` and `?` within a folder.

    Raises:
        FileNotFoundError: One matches no file.
        OSError: Its storage cannot be reached.
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
