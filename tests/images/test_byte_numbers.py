"""Numbers in headers; the expected values are worked out by hand."""

import tensorflow as tf

from kbert.images.byte_numbers import MARGIN, byte_vector, count_bytes, has_bytes, number


def test_numbers_of_both_byte_orders():
    content = byte_vector(tf.constant(b"\x01\x02\xff\xff\xff\xff"))
    assert content.shape == (6 + MARGIN,)
    assert number(content, 0, 2) == 0x0102
    assert number(content, 0, 2, little=True) == 0x0201
    assert number(content, 0, 3, little=tf.constant(True)) == 0xFF0201
    assert number(content, 2, 4) == 2**32 - 1  # no sign
    assert number(content, [0, 1], 1).numpy().tolist() == [1, 2]


def test_behind_the_end_there_are_zeros():
    content = byte_vector(tf.constant(b"\xff"))
    assert number(content, 1, 4) == 0
    assert number(content, 2**40, 4) == 0
    assert number(content, -5, 1) == 0xFF  # the nearest byte
    assert number(byte_vector(tf.constant(b"")), 0, 2) == 0


def test_bytes_at_an_offset():
    content = byte_vector(tf.constant(b"a RIFF"))
    assert has_bytes(content, 2, b"RIFF")
    assert not has_bytes(content, 1, b"RIFF")
    assert not has_bytes(content, 2**40, b"RIFF")


def test_bytes_are_counted():
    content = byte_vector(tf.constant(b"\xff\xda\xff\xda\xda\xff"))
    assert count_bytes(content, b"\xff\xda") == 2
    assert count_bytes(content[3:], b"\xff\xda") == 0
    assert count_bytes(content[:1], b"\xff\xda") == 0
    assert count_bytes(content[:0], b"\xff\xda") == 0
