"""Sizes that images may have, checked by their headers before anything is decoded."""

import tensorflow as tf


def size_problem(height: tf.Tensor, width: tf.Tensor, max_pixels: int) -> tf.Tensor:
    """Returns what is wrong with the size in a header, or "", as a string ().

    Args:
        height, width: whole numbers ().
        max_pixels: the most that height times width may be.
    """
    height, width = tf.cast(height, tf.int64), tf.cast(width, tf.int64)
    size = tf.strings.join([tf.strings.as_string(height), " x ", tf.strings.as_string(width)])
    empty = tf.strings.join(["the image must have pixels. Received: ", size])
    large = tf.strings.join(
        [f"the image must have at most {max_pixels} pixels. Received: ", size, " pixels"]
    )
    # Divided, not multiplied: the product of two 32-bit numbers may be larger than int64.
    too_large = height > max_pixels // tf.maximum(width, 1)
    none = (height < 1) | (width < 1)
    return tf.where(none, empty, tf.where(too_large, large, ""))
