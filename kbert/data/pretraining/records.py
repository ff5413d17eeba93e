"""TFRecords to pretrain on, written in the layout of google-research/bert.

Each record is a tf.train.Example of one masked example: `input_ids`, `input_mask`, `segment_ids`
(T each), `masked_lm_positions`, `masked_lm_ids`, `masked_lm_weights` (P each) and
`next_sentence_labels` (1). Source: `create_pretraining_data.py` there,
`write_instance_to_example_files`. `kbert.data.pretraining.records_dataset` reads them.

Shapes: T tokens, P predictions.
"""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.storage.files import atomic_directory, sha256_of

_PREFIX = "pretraining"
MANIFEST = "manifest.json"
_Batch = dict[str, tf.Tensor]
# Numbers of fields of tf.train.Example and its parts, with the wire type 2: length-prefixed bytes.
# See https://protobuf.dev/programming-guides/encoding, and tensorflow/core/example/*.proto.
_FEATURES = _FEATURE = _KEY = _LIST = b"\x0a"  # 1
_VALUE = b"\x12"  # 2, of an entry of a map
_FLOATS, _INTEGERS = b"\x12", b"\x1a"  # 2 and 3, of a Feature


def write_records(
    batches: Iterable[tuple[_Batch, _Batch]],
    directory: str | os.PathLike[str],
    shards: int = 1,
    compress: bool = False,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
) -> int:
    """Writes masked examples, atomically: the folder is written whole or not at all.

    Returns the number of examples; a ValueError says that there are fewer than `shards`, or that
    the objective masks no token.

    Args:
        batches: (inputs, targets) of `pretraining_dataset` with `epochs`, for an objective with
            masked tokens. Without "next_sentence", all labels are 0.
        directory: the folder to create, of `pretraining-00000-of-00010.tfrecord` and so on.
        shards: number of files; examples are distributed round-robin.
        about: how the examples were made, in JSON types; written to `manifest.json`, with the
            number of examples and the SHA-256 of each file. None: no manifest.
    """
    if shards < 1:
        raise ValueError(f"`shards` must be at least 1. Received: shards={shards}")
    written = 0
    with atomic_directory(directory, overwrite) as folder, ExitStack() as stack:
        writers = [
            stack.enter_context(tf.io.TFRecordWriter(str(path), "GZIP" if compress else ""))
            for path in shard_paths(folder, shards)
        ]
        for inputs, targets in batches:
            for record in serialized(inputs, targets):
                writers[written % shards].write(record)
                written += 1
        if written < shards:
            raise ValueError(
                f"`batches` must have an example for each of the `shards`={shards} files. "
                f"Received: {written or 'none'}"
            )
        stack.close()
        if about is not None:
            files = {path.name: sha256_of(path) for path in sorted(folder.iterdir())}
            told = {"examples": written, "files": files, **about}
            text = json.dumps(told, indent=2, ensure_ascii=False)
            (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")
    return written


def is_record(path: Path) -> bool:
    """Returns whether a file has a name that `write_records` uses."""
    return path.name == MANIFEST or path.match(f"{_PREFIX}-*.tfrecord")


def shard_paths(directory: str | os.PathLike[str], shards: int) -> list[Path]:
    """Returns the paths of the TFRecords that `write_records` writes."""
    return [
        Path(directory, f"{_PREFIX}-{shard:05d}-of-{shards:05d}.tfrecord")
        for shard in range(shards)
    ]


def serialized(inputs: _Batch, targets: _Batch) -> list[bytes]:
    """Serializes a batch of `pretraining_dataset`; a ValueError if it has no masked tokens."""
    if "masked_tokens" not in targets:
        raise ValueError(
            "`batches` must be of an objective with masked tokens. "
            f"Received: targets {', '.join(targets)}"
        )
    masked = np.asarray(targets["masked_tokens"])
    labels = targets.get("next_sentence", np.zeros(len(masked), "int32"))
    columns = {
        "input_ids": inputs["token_ids"],
        "input_mask": np.asarray(inputs["padding_mask"]).astype("int32"),
        "segment_ids": inputs["segment_ids"],
        "masked_lm_positions": inputs["masked_positions"],
        "masked_lm_ids": np.maximum(masked, 0),
        "masked_lm_weights": (masked >= 0).astype("float32"),
        "next_sentence_labels": np.asarray(labels)[:, np.newaxis],
    }
    return example_bytes({name: np.asarray(column) for name, column in columns.items()})


def example_bytes(columns: Mapping[str, np.ndarray]) -> list[bytes]:
    """Serializes rows, as `SerializeToString(deterministic=True)` of tf.train.Example does.

    Those classes take one number after the other; with them `kbert prepare` would need half as much
    processor time again, for records of 512 tokens. `columns` are the features of all rows: (B, N)
    each, N at least 1, of floats or of integers from 0 to 2^31 - 1.
    """
    features = []
    for name in sorted(columns, key=str.encode):
        values = columns[name]
        if values.dtype.kind == "f":
            kind, packed = _FLOATS, [row.tobytes() for row in values.astype("<f4")]
        else:
            kind, packed = _INTEGERS, _varints(values)
        features.append([_head(name, kind, len(numbers)) + numbers for numbers in packed])
    messages = map(b"".join, zip(*features))
    return [_FEATURES + _length(len(message)) + message for message in messages]


@lru_cache(maxsize=1 << 16)
def _head(name: str, kind: bytes, size: int) -> bytes:
    """Returns the bytes before the numbers of a feature, which are `size` bytes."""
    head = b""
    for tag in (_LIST, kind, _VALUE):
        head = tag + _length(size + len(head)) + head
    head = _KEY + _length(len(name.encode())) + name.encode() + head
    return _FEATURE + _length(size + len(head)) + head


@lru_cache(maxsize=1 << 16)
def _length(size: int) -> bytes:
    length = b""
    while size >= 128:
        length += bytes((size & 127 | 128,))
        size >>= 7
    return length + bytes((size,))


def _varints(values: np.ndarray) -> list[bytes]:
    """Encodes rows in groups of seven bits, the lowest first; all but a number's last set bit 7."""
    largest = int(values.max(initial=0))
    if values.min(initial=0) < 0 or largest >= 1 << 31:
        raise ValueError(
            "`columns` must hold integers from 0 to 2^31 - 1. "
            f"Received: {values.min()} to {largest}"
        )
    if largest < 128:
        return [row.tobytes() for row in values.astype("uint8")]
    shifts = 7 * np.arange(-(-largest.bit_length() // 7), dtype="uint32")
    groups = values.astype("uint32")[..., np.newaxis] >> shifts  # (B, N, groups)
    is_there = groups > 0
    is_there[..., 0] = True
    cells = groups.astype("uint8") & 127 | (groups >= 128).view("uint8") << 7
    ends = np.cumsum(np.count_nonzero(is_there, axis=(1, 2))).tolist()
    content = cells[is_there].tobytes()
    return [content[begin:end] for begin, end in zip([0, *ends], ends)]
