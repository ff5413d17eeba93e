"""Serialization of rows of arrays as tf.train.Example, many at a time.

Protocol buffers' own classes take one number after the other. Source: the encoding of protocol
buffers (https://protobuf.dev/programming-guides/encoding), and tensorflow/core/example/
example.proto and feature.proto for the fields.

Shapes: B rows, N numbers.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

# Field numbers with the wire type 2: length-prefixed bytes.
_FEATURES = _FEATURE = _KEY = _LIST = b"\x0a"  # 1
_VALUE = b"\x12"  # 2, of an entry of a map
_FLOATS, _INTEGERS = b"\x12", b"\x1a"  # 2 and 3, of a Feature


def example_bytes(columns: Mapping[str, np.ndarray]) -> list[bytes]:
    """Serializes rows, as `SerializeToString(deterministic=True)` of tf.train.Example does.

    Args:
        columns: the features of all rows: (B, N) each, N at least 1, of floats or of integers from
            0 to 2^31 - 1.

    Returns:
        B serialized examples.

    Raises:
        ValueError: an integer is negative or too large.
    """
    features = []
    for name in sorted(columns, key=str.encode):
        values = columns[name]
        is_float = values.dtype.kind == "f"
        kind, packed = (_FLOATS, _floats(values)) if is_float else (_INTEGERS, _varints(values))
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


def _floats(values: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in values.astype("<f4")]


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
