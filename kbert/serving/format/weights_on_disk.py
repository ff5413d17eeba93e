"""The weights of an export: their number, their dtypes, and duplicates among them."""

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

# Errors that TensorFlow raises for damaged files.
_DAMAGE = (tf.errors.OpError, RuntimeError, ValueError, IndexError, TypeError)
# Smaller arrays may be equal by chance, such as new biases.
_LARGE_BYTES = 1 << 14


@dataclass(frozen=True)
class Weights:
    """Numbers of an export's arrays, parameters and bytes; name of a dtype -> its parameters."""

    arrays: int
    parameters: int
    bytes: int
    dtypes: dict[str, int]


def weights_of(export_dir: str | os.PathLike[str]) -> Weights:
    """Counts the weights of a version folder, without reading them.

    Raises:
        ValueError: The weights cannot be read. A model without weights is not an error.
    """
    dtypes: dict[str, int] = {}
    arrays = size = 0
    for _, shape, dtype in _arrays(_reader(export_dir)):
        count = int(np.prod(shape, dtype=np.int64))
        arrays += 1
        dtypes[dtype.name] = dtypes.get(dtype.name, 0) + count
        size += count * dtype.size
    return Weights(arrays, sum(dtypes.values()), size, dict(sorted(dtypes.items())))


def stored_twice(export_dir: str | os.PathLike[str]) -> list[tuple[str, ...]]:
    """Finds large weights that a version folder holds more than once: the names of all copies.

    Constant arrays are left out: they are newly initialized, and rightly equal.

    Raises:
        ValueError: The weights cannot be read.
    """
    reader = _reader(export_dir)
    found: dict[bytes, list[str]] = {}
    for name, shape, dtype in _arrays(reader):
        if int(np.prod(shape, dtype=np.int64)) * dtype.size < _LARGE_BYTES:
            continue
        try:
            array = reader.get_tensor(name)
        except _DAMAGE as error:
            raise ValueError(f"`{name}` must be readable. Received: {error}") from error
        if (array == array.flat[0]).all():
            continue
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes())
        digest.update(f"{dtype.name}{shape}".encode())
        found.setdefault(digest.digest(), []).append(name)
    return [tuple(names) for names in found.values() if len(names) > 1]


def _reader(export_dir: str | os.PathLike[str]) -> Any:
    prefix = Path(export_dir, "variables", "variables")
    if not prefix.with_name("variables.index").is_file():
        return None
    try:
        return tf.train.load_checkpoint(str(prefix))
    except _DAMAGE as error:
        raise ValueError(f"`{prefix}` must hold weights. Received: {error}") from error


def _arrays(reader: Any) -> Iterator[tuple[str, list[int], tf.DType]]:
    """Yields name, shape and dtype of all arrays; strings are names of objects, not weights."""
    if reader is None:
        return
    dtypes = reader.get_variable_to_dtype_map()
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):
        if dtypes[name] != tf.string:
            yield name, shape, dtypes[name]
