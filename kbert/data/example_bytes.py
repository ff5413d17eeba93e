"""Rows of arrays as serialized tf.train.Example, many at a time.

Protocol buffers' own classes take one number after the other. Source: the encoding of protocol
buffers (https://protobuf.dev/programming-guides/encoding), and tensorflow/core/example/
example.proto and feature.proto for the fields.

Shapes: B rows, N numbers.
"""

from collections.abc import Mapping

import numpy as np

# Field numbers with the wire type 2: bytes of a length that is told first.
_FEATURES = _FEATURE = _KEY = _LIST = b"\x0a"  # 1
_VALUE = b"\x12"  # 2, of an entry of a map
_FLOATS, _INTEGERS = b"\x12", b"\x1a"  # 2 and 3, of a Feature


def example_bytes(columns: Mapping[str, np.ndarray]) -> list[bytes]:
    """What `SerializeToString(deterministic=True)` of each row's tf.train.Example gives.

    Args:
        columns: the features of all rows: (B, N) each, N at least 1, of floats or of integers from
            0 to 2^31 - 1.

    Returns:
        B strings of bytes.

    Raises:
        ValueError: an integer is negative or too large.
    """
    entries = []
    for name in sorted(columns, key=str.encode):
        values = columns[name]
        is_float = values.dtype.kind == "f"
        kind, packed = (_FLOATS, _floats(values)) if is_float else (_INTEGERS, _varints(values))
        key = _field(_KEY, name.encode())
        feature = (_field(_VALUE, _field(kind, _field(_LIST, numbers))) for numbers in packed)
        entries.append([_field(_FEATURE, key + value) for value in feature])
    return [_field(_FEATURES, b"".join(row)) for row in zip(*entries)]


def _field(tag: bytes, content: bytes) -> bytes:
    size, length = len(content), b""
    while size >= 128:
        length += bytes((size & 127 | 128,))
        size >>= 7
    return tag + length + bytes((size,)) + content


def _floats(values: np.ndarray) -> list[bytes]:
    return [row.tobytes() for row in values.astype("<f4")]


def _varints(values: np.ndarray) -> list[bytes]:
    """Each row in groups of seven bits, the lowest first; all but a number's last have bit 7."""
    largest = int(values.max(initial=0))
    if values.min(initial=0) < 0 or largest >= 1 << 31:
        raise ValueError(
            "`columns` must hold integers from 0 to 2^31 - 1. "
            f"Received: {values.min()} to {largest}"
        )
    if largest < 128:
        return [row.tobytes() for row in values.astype("uint8")]
    shifts = 7 * np.arange(-(-largest.bit_length() // 7))
    groups = values.astype("int64")[..., np.newaxis] >> shifts  # (B, N, groups)
    is_there = (groups > 0) | (shifts == 0)
    goes_on = groups >= 128
    cells = ((groups & 127) | (goes_on << 7)).astype("uint8")
    ends = np.cumsum(is_there.sum(axis=(1, 2))).tolist()
    content = cells[is_there].tobytes()
    return [content[begin:end] for begin, end in zip([0, *ends], ends)]
