"""Encoded images as vectors of bytes, and the whole numbers of their headers, in the graph."""

import functools

import tensorflow as tf

# Zeros behind the last byte, so that a header that is cut off reads as zeros.
MARGIN = 64


def byte_vector(image: tf.Tensor) -> tf.Tensor:
    """Returns the bytes of an image, a string (), as uint8 (N + 64,): 64 zeros follow them."""
    return tf.io.decode_raw(tf.strings.join([image, b"\0" * MARGIN]), tf.uint8)


def number(
    content: tf.Tensor, at: tf.Tensor | int, width: int, little: tf.Tensor | bool = False
) -> tf.Tensor:
    """Returns unsigned whole numbers of a `byte_vector`.

    Args:
        content: uint8 (N,).
        at: offset of each number's first byte, of any shape; one outside of the content is moved
            to its nearest end.
        width: bytes of a number, 1 to 4.
        little: whether the least significant byte comes first; bool ().

    Returns:
        int64, in the shape of `at`.
    """
    last = tf.size(content, tf.int64) - 1
    places = tf.cast(at, tf.int64)[..., tf.newaxis] + tf.range(width, dtype=tf.int64)
    digits = tf.cast(tf.gather(content, tf.clip_by_value(places, 0, last)), tf.int64)
    values = [256**power for power in range(width)]
    factors = tf.where(little, tf.constant(values, tf.int64), tf.constant(values[::-1], tf.int64))
    return tf.reduce_sum(digits * factors, axis=-1)


def has_bytes(content: tf.Tensor, at: tf.Tensor | int, expected: bytes) -> tf.Tensor:
    """Returns whether some bytes stand at an offset of a `byte_vector`, bool ()."""
    last = tf.size(content, tf.int64) - 1
    places = tf.cast(at, tf.int64) + tf.range(len(expected), dtype=tf.int64)
    found = tf.gather(content, tf.clip_by_value(places, 0, last))
    return tf.reduce_all(found == tf.constant(list(expected), tf.uint8))


def count_bytes(content: tf.Tensor, expected: bytes) -> tf.Tensor:
    """Returns how often some bytes stand in a `byte_vector`, int64 ()."""
    last = tf.maximum(tf.size(content) - len(expected), 0)
    found = [content[i : i + last] == byte for i, byte in enumerate(expected)]
    # Not `count_nonzero`, which makes eight bytes of each.
    return tf.shape(tf.where(functools.reduce(tf.logical_and, found)), tf.int64)[0]
