"""Messages against bytes written by hand from the specification, and against the library."""

import pytest
from google.protobuf import struct_pb2

from kbert.checkpoints.arrays.wire_format import Field, field_bytes, read_fields


@pytest.mark.parametrize(
    "number, value, wanted",
    [
        # The example of the specification: field 1, varint 150.
        (1, 150, b"\x08\x96\x01"),
        # Its other one: field 2, the string "testing".
        (2, "testing", b"\x12\x07testing"),
        (2, b"", b"\x12\x00"),
        # 1.0 is 0x3f800000, the lowest byte first; the key of field 2 is 2 * 8 + 5.
        (2, 1.0, b"\x15\x00\x00\x80\x3f"),
        (16, 0, b"\x80\x01\x00"),
    ],
)
def test_one_field(number, value, wanted):
    assert field_bytes(number, value) == wanted
    expected = value.encode() if isinstance(value, str) else value
    assert list(read_fields(wanted)) == [Field(number, expected, wanted)]


def test_the_library_reads_what_is_written():
    # google/protobuf/struct.proto: Value.string_value is 3, ListValue.values is 1.
    one = field_bytes(3, "x" * 300)
    message = struct_pb2.ListValue()
    message.ParseFromString(field_bytes(1, one) + field_bytes(1, field_bytes(3, "é")))
    assert [value.string_value for value in message.values] == ["x" * 300, "é"]


def test_what_the_library_writes_is_read():
    # A double has eight bytes, which stay bytes: 0x3ff0000000000000 is 1.0.
    value = struct_pb2.Value(number_value=1.0).SerializeToString()
    assert [field[:2] for field in read_fields(value)] == [(2, bytes(6) + b"\xf0\x3f")]


@pytest.mark.parametrize(
    "message, problem",
    [
        (b"\x08", "a number must be whole"),
        (b"\x08\x96", "a number must be whole"),
        (b"\x12\x07test", "a field must be whole. Received: field 2"),
        (b"\x15\x00\x00", "a field must be whole. Received: field 2"),
        (b"\x0b", "of a known kind. Received: kind 3"),
        (b"\x00\x01", "a field must be whole. Received: field 0"),
        (b"\x08" + b"\xff" * 20, "a number must be whole"),
    ],
)
def test_what_is_no_message(message, problem):
    with pytest.raises(ValueError, match=problem):
        list(read_fields(message))
