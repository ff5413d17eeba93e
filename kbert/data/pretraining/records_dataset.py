"""TFRecords to pretrain on, read in the layout of google-research/bert.

See `kbert.data.pretraining.records`, which writes them. Model Garden's names, `input_word_ids` and
`input_type_ids`, are read too.

Shapes: B batch, T tokens, P predictions.
"""

import os
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError

from kbert.data.batches.dataset import read_ahead, unsharded
from kbert.data.pretraining.corpus import check_worker

_INFINITE = tf.data.INFINITE_CARDINALITY
_GZIP_BEGINS = b"\x1f\x8b"
_TOKENS = ("input_ids", "input_word_ids")
_SEGMENTS = ("segment_ids", "input_type_ids")
_PREDICTIONS = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")
_Batch = dict[str, tf.Tensor]
_Features = dict[str, tf.io.FixedLenFeature]


def records_dataset(
    files: Sequence[str | os.PathLike[str]],
    *,
    batch_size: int,
    next_sentence: bool = True,
    seed: int = 0,
    shuffle: bool = True,
    window_examples: int = 20_000,
    worker: int = 0,
    workers: int = 1,
    epochs: int | None = None,
    first_batch: int = 0,
) -> tf.data.Dataset:
    """Returns batches of the examples in TFRecords; T and P are those of the records.

    They are (inputs, targets) of `kbert.data.pretraining.dataset.pretraining_dataset` for masked
    tokens. The order is a function of the files, the seed and the workers alone. If a record is
    damaged, `check_files` of the dataset reads all files and raises a ValueError that names the
    damaged one.

    Args:
        files: the TFRecords, gzipped or not, at paths that `tf.io.gfile` reads.
        next_sentence: whether the targets have "next_sentence".
        shuffle: whether files and examples are shuffled, differently in each epoch.
        window_examples: size of the shuffle buffer, in examples; memory grows with it.
        worker: index of this worker, from 0; each record is read by one worker.
        epochs: number of epochs, whose last batch may be smaller; None: no end.
        first_batch: number of batches to skip, to resume after them. They are read, not decoded.

    Raises:
        FileNotFoundError: A file does not exist.
        ValueError: An argument or a file cannot be used, or there are fewer records than workers.
    """
    for name, value in (("batch_size", batch_size), ("window_examples", window_examples)):
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1. Received: {name}={value}")
    check_worker(worker, workers)
    names = [os.fspath(file) for file in files]
    compression = _compression(names)
    features = _features(names, compression)
    _check_count(names, compression, workers)
    window = window_examples if shuffle else 0
    records = _reader(names, compression, seed, window, worker, workers)
    rounds = tf.data.Dataset.counter() if epochs is None else tf.data.Dataset.range(epochs)
    batches = rounds.flat_map(records).batch(batch_size, drop_remainder=epochs is None)
    decode = _decoder(features, next_sentence)
    batches = batches.skip(first_batch).map(decode)
    if epochs is None:
        batches = batches.apply(tf.data.experimental.assert_cardinality(_INFINITE))
    dataset = read_ahead(unsharded(batches))
    dataset.check_files = partial(_check_files, names, compression)
    return dataset


def _check_count(names: Sequence[str], compression: str, workers: int) -> None:
    """Checks that each worker has a record: without one its dataset would search without an end."""
    if len(names) >= workers:  # each has a file, and each file has a record
        return
    first = tf.data.TFRecordDataset(names, compression).ignore_errors().take(workers)
    count = sum(1 for _ in first)
    if count < workers:
        raise ValueError(
            f"`files` must have at least a whole record for each of {workers} workers. "
            f"Received: {count}"
        )


def _check_files(names: Sequence[str], compression: str) -> None:
    for name in names:
        try:
            for _ in tf.data.TFRecordDataset(name, compression).batch(1 << 10):
                pass
        except tf.errors.OpError as error:
            reason = f"{name}: the file must be a whole TFRecord. Received: {_said(error)}"
            raise ValueError(reason) from error


def _said(error: tf.errors.OpError) -> str:
    """Returns the message of a dataset's error, without the names of graph nodes."""
    return re.sub(r"\{\{.*?\}\}|\[Op:.*", "", " ".join(error.message.split())).strip()


def _reader(
    names: Sequence[str], compression: str, seed: int, window: int, worker: int, workers: int
) -> Callable[[tf.Tensor], tf.data.Dataset]:
    """Returns a map from an epoch's number to a worker's records; `window` 0 keeps their order."""

    @tf.autograph.experimental.do_not_convert
    def records(epoch: tf.Tensor) -> tf.data.Dataset:
        order = tf.constant(names)
        # Dataset.shuffle would depend on TensorFlow's own seed as well.
        seeds = tf.stack([tf.constant(seed, tf.int64), epoch])
        if window:
            order = tf.random.experimental.stateless_shuffle(order, seeds)
        by_file = len(names) >= workers
        found = tf.data.TFRecordDataset(order[worker::workers] if by_file else order, compression)
        if not by_file:
            found = found.shard(workers, worker)
        if not window:
            return found

        @tf.autograph.experimental.do_not_convert
        def shuffled(number: tf.Tensor, rows: tf.Tensor) -> tf.data.Dataset:
            own = tf.random.experimental.stateless_fold_in(seeds, number)
            rows = tf.random.experimental.stateless_shuffle(rows, own)
            return tf.data.Dataset.from_tensor_slices(rows)

        return found.batch(window).enumerate().flat_map(shuffled)

    return records


def _compression(names: Sequence[str]) -> str:
    """Returns the compression of the files, which must be the same for all."""
    kinds = set()
    for name in names:
        if not tf.io.gfile.exists(name):
            raise FileNotFoundError(f"`files` must be files. Received: {name!r}")
        with tf.io.gfile.GFile(name, "rb") as file:
            kinds.add("GZIP" if file.read(2) == _GZIP_BEGINS else "")
    if len(kinds) != 1:
        received = "none" if not names else "some of them gzipped"
        raise ValueError(f"`files` must be TFRecords, all or none gzipped. Received: {received}")
    return kinds.pop()


def _features(names: Sequence[str], compression: str) -> _Features:
    """Returns the features of the records, from the first record of each file."""
    first = _features_of(names[0], compression)
    for name in names[1:]:
        if (found := _features_of(name, compression)) != first:
            raise ValueError(
                f"{name}: the records must be like those of {names[0]}, which have "
                f"{_sizes(first)}. Received: {_sizes(found)}"
            )
    return first


def _sizes(features: _Features) -> str:
    return ", ".join(f"{name} ({feature.shape[0]})" for name, feature in features.items())


def _features_of(name: str, compression: str) -> _Features:
    found = _first_example(name, compression).features.feature
    names = [
        next((name for name in some if name in found), some[0]) for some in (_TOKENS, _SEGMENTS)
    ]
    names += ["input_mask", *_PREDICTIONS, "next_sentence_labels"]
    missing = [name for name in names if name not in found]
    if missing:
        raise ValueError(
            f"{name}: the file must hold examples in the layout of google-research/bert. "
            f"Received: a record without {', '.join(missing)}"
        )
    kinds = {name: tf.float32 if found[name].HasField("float_list") else tf.int64 for name in names}
    return {
        name: tf.io.FixedLenFeature(
            [max(len(found[name].float_list.value), len(found[name].int64_list.value))], kind
        )
        for name, kind in kinds.items()
    }


def _first_example(name: str, compression: str) -> tf.train.Example:
    try:
        first = next(iter(tf.data.TFRecordDataset(name, compression).take(1)), None)
    except tf.errors.OpError as error:
        reason = f"{name}: the file must be a TFRecord. Received: {_said(error)}"
        raise ValueError(reason) from None
    if first is None:
        raise ValueError(f"{name}: the file must hold records. Received: none")
    try:
        return tf.train.Example.FromString(first.numpy())
    except DecodeError as error:
        reason = f"{name}: the records must be tf.train.Example. Received: {error}"
        raise ValueError(reason) from None


def _decoder(
    features: _Features, next_sentence: bool
) -> Callable[[tf.Tensor], tuple[_Batch, _Batch]]:
    """Returns a map from serialized records to inputs and targets."""
    tokens, segments = (next(x for x in some if x in features) for some in (_TOKENS, _SEGMENTS))

    @tf.autograph.experimental.do_not_convert
    def decode(records: tf.Tensor) -> tuple[_Batch, _Batch]:
        found: Any = tf.io.parse_example(records, features)
        positions, ids, weights = (found[name] for name in _PREDICTIONS)
        inputs = {
            "token_ids": tf.cast(found[tokens], tf.int32),
            "segment_ids": tf.cast(found[segments], tf.int32),
            "padding_mask": found["input_mask"] > 0,
            "masked_positions": tf.cast(positions, tf.int32),
        }
        targets = {"masked_tokens": tf.cast(tf.where(weights > 0, ids, -1), tf.int32)}
        if next_sentence:
            targets["next_sentence"] = tf.cast(found["next_sentence_labels"][:, 0], tf.int32)
        return inputs, targets

    return decode
