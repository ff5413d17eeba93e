"""Protocol buffer messages as fields, without generated classes.

Generated classes each require a range of versions of the protobuf library; the wire format has been
stable since 2008.

Source: https://protobuf.dev/programming-guides/encoding
"""

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED = {_FIXED32: 4, _FIXED64: 8}


class Field(NamedTuple):
    """One field of a message; `value` is an int for a varint, a float for four bytes, else bytes.

    `raw` holds the bytes of the whole field.
    """

    number: int
    value: Any
    raw: bytes


def read_fields(message: bytes) -> Iterator[Field]:
    """Yields the fields of a message in order; bytes that are no message raise a ValueError."""
    place = 0
    while place < len(message):
        begin = place
        key, place = read_varint(message, place)
        number, kind = key >> 3, key & 7
        value: Any
        if kind == _VARINT:
            value, place = read_varint(message, place)
        elif kind == _BYTES or kind in _FIXED:
            length = _FIXED.get(kind)
            if length is None:
                length, place = read_varint(message, place)
            value, place = message[place : place + length], place + length
        else:
            raise ValueError(f"a field must be of a known kind. Received: kind {kind}")
        if number < 1 or place > len(message):
            raise ValueError(f"a field must be whole. Received: field {number}, which is cut off")
        if kind == _FIXED32:
            (value,) = struct.unpack("<f", value)
        yield Field(number, value, message[begin:place])


def field_bytes(number: int, value: int | float | str | bytes) -> bytes:
    """Encodes one field: an int, which must not be negative, as a varint, a float in four bytes.

    Of several fields with one number the last counts, so that a value is set by appending it.
    """
    if isinstance(value, float):
        return _varint(number << 3 | _FIXED32) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint(number << 3 | _VARINT) + _varint(value)
    content = value.encode() if isinstance(value, str) else value
    return _varint(number << 3 | _BYTES) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    """Encodes seven bits per byte, the lowest first; the eighth marks that more follow."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def read_varint(message: bytes, place: int) -> tuple[int, int]:
    """Reads the varint at an offset: the number, and the offset of its end.

    Raises a ValueError if the bytes end within it, or it is longer than ten bytes.
    """
    value = shift = 0
    while place < len(message) and shift < 70:
        value |= (message[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if message[place - 1] < 128:
            return value, place
    raise ValueError("a number must be whole. Received: one that is cut off")
