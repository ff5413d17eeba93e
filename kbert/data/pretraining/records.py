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
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from kbert.data.pretraining.example_bytes import example_bytes
from kbert.storage.atomic_directory import atomic_directory
from kbert.storage.checksums import sha256_of

_PREFIX = "pretraining"
MANIFEST = "manifest.json"
_Batch = dict[str, tf.Tensor]


def write_records(
    batches: Iterable[tuple[_Batch, _Batch]],
    directory: str | os.PathLike[str],
    shards: int = 1,
    compress: bool = False,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
) -> int:
    """Writes masked examples, atomically: the folder is written whole or not at all.

    Args:
        batches: (inputs, targets) of `pretraining_dataset` with `epochs`, for an objective with
            masked tokens. Without "next_sentence", all labels are 0.
        directory: the folder to create, of `pretraining-00000-of-00010.tfrecord` and so on.
        shards: number of files; examples are distributed round-robin.
        compress: whether the files are gzipped.
        overwrite: whether an existing folder may be replaced.
        about: how the examples were made, in JSON types; written to `manifest.json`, with the
            number of examples and the SHA-256 of each file. None: no manifest.

    Returns:
        The number of examples.

    Raises:
        ValueError: `shards` is below 1, there are fewer examples, or the objective masks no token.
        FileExistsError: `directory` exists and `overwrite` is False.
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
            _write_manifest(folder, written, about)
    return written


def _write_manifest(folder: Path, examples: int, about: Mapping[str, Any]) -> None:
    files = {path.name: sha256_of(path) for path in sorted(folder.iterdir())}
    told = {"examples": examples, "files": files, **about}
    text = json.dumps(told, indent=2, ensure_ascii=False)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def is_record(path: Path) -> bool:
    """Returns whether a file has a name that `write_records` uses.

    Args:
        path: the file.
    """
    return path.name == MANIFEST or path.match(f"{_PREFIX}-*.tfrecord")


def shard_paths(directory: str | os.PathLike[str], shards: int) -> list[Path]:
    """Returns the paths of the TFRecords that `write_records` writes."""
    return [
        Path(directory, f"{_PREFIX}-{shard:05d}-of-{shards:05d}.tfrecord")
        for shard in range(shards)
    ]


def serialized(inputs: _Batch, targets: _Batch) -> list[bytes]:
    """Serializes a batch to records.

    Args:
        inputs: inputs of a batch of `pretraining_dataset`.
        targets: its targets.

    Raises:
        ValueError: there are no masked tokens: the batch is for left-to-right models.
    """
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
