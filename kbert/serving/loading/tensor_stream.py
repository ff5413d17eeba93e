"""Serialized tensors in the format of `session_loader.c` (see its first comment)."""

import struct
from typing import Any, BinaryIO

import numpy as np
import tensorflow as tf

from kbert.data.tables.columns import without_surrogates

_INT32 = struct.Struct("=i")
_INT64 = struct.Struct("=q")


def write_count(stream: BinaryIO, count: int) -> None:
    """Writes a count as int32."""
    stream.write(_INT32.pack(count))


def write_name(stream: BinaryIO, name: str) -> None:
    """Writes a name."""
    content = name.encode("utf-8")
    stream.write(_INT32.pack(len(content)) + content)


def write_tensor(stream: BinaryIO, array: np.ndarray, dtype: tf.DType) -> None:
    """Writes an array as a tensor.

    Args:
        stream: The stream to write to.
        array: Numbers of `dtype`; for strings an array of objects, each str or bytes. Lone
            surrogates of a str, which UTF-8 cannot encode, become U+FFFD.
        dtype: The tensor's dtype.
    """
    write_count(stream, dtype.as_datatype_enum)
    write_count(stream, array.ndim)
    stream.write(struct.pack(f"={array.ndim}q", *array.shape))
    if dtype != tf.string:
        stream.write(np.ascontiguousarray(array).tobytes())
        return
    for item in array.ravel():
        content = _utf8(item) if isinstance(item, str) else bytes(item)
        stream.write(_INT64.pack(len(content)) + content)


def _utf8(text: str) -> bytes:
    return without_surrogates(text, "a text", "replace").encode()


def read_count(stream: BinaryIO) -> int:
    """Reads an int32.

    Raises:
        EOFError: The stream ends.
    """
    return int(_INT32.unpack(_read(stream, 4))[0])


def read_name(stream: BinaryIO) -> str:
    """Reads a name.

    Raises:
        EOFError: The stream ends.
    """
    return _read(stream, read_count(stream)).decode("utf-8", "replace")


def read_tensor(stream: BinaryIO) -> np.ndarray:
    """Reads a tensor as an array of its dtype, or of bytes objects.

    Raises:
        EOFError: The stream ends.
    """
    dtype = tf.dtypes.as_dtype(read_count(stream))
    rank = read_count(stream)
    shape = struct.unpack(f"={rank}q", _read(stream, 8 * rank))
    count = int(np.prod(shape, dtype=np.int64))
    if dtype != tf.string:
        numbers: Any = np.dtype(dtype.as_numpy_dtype)
        return np.frombuffer(_read(stream, count * numbers.itemsize), numbers).reshape(shape)
    strings = np.empty(count, dtype=object)
    for index in range(count):
        strings[index] = _read(stream, _INT64.unpack(_read(stream, 8))[0])
    return strings.reshape(shape)


def _read(stream: BinaryIO, size: int) -> bytes:
    content = stream.read(size)
    if len(content) < size:
        raise EOFError(f"The stream must have {size} more bytes. Received: {len(content)}")
    return content
