"""Sizes that images may have, checked by their headers before anything is decoded."""

from collections.abc import Callable

import tensorflow as tf

# Resizing keeps an image of the new height and the old width, so that a long side alone takes
# memory. No JPEG or GIF is longer.
MAX_SIDE = 65_535


def size_problem(height: tf.Tensor, width: tf.Tensor, max_pixels: tf.Tensor | int) -> tf.Tensor:
    """Returns what is wrong with the size in a header, or "", as a string ().

    Args:
        height, width: whole numbers ().
        max_pixels: the most that height times width may be, int64 ().
    """
    max_pixels = tf.cast(max_pixels, tf.int64)
    height, width = tf.cast(height, tf.int64), tf.cast(width, tf.int64)
    size = tf.strings.join([tf.strings.as_string(height), " x ", tf.strings.as_string(width)])
    empty = tf.strings.join(["the image must have pixels. Received: ", size])
    most = tf.strings.as_string(max_pixels)
    large = tf.strings.join(
        ["the image must have at most ", most, " pixels. Received: ", size, " pixels"]
    )
    long = tf.strings.join(
        [f"the image must have sides of at most {MAX_SIDE} pixels. Received: ", size, " pixels"]
    )
    is_long = tf.maximum(height, width) > MAX_SIDE
    is_large = tf.minimum(height, MAX_SIDE) * tf.minimum(width, MAX_SIDE) > max_pixels
    is_empty = tf.minimum(height, width) < 1
    problem = tf.where(is_large, large, tf.where(is_long, long, ""))
    return tf.where(is_empty, empty, problem)


def pixels_unless(problem: tf.Tensor, decode: Callable[[], tf.Tensor]) -> tf.Tensor:
    """Returns `decode()`, uint8 (h, w, 3), where `problem` is "", else a black pixel."""
    pixels = tf.cond(problem == "", decode, lambda: tf.zeros((1, 1, 3), tf.uint8))
    return tf.ensure_shape(pixels, (None, None, 3))
