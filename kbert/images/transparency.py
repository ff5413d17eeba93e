"""Pixels with an alpha channel, blended on white."""

import tensorflow as tf


def on_white(pixels: tf.Tensor) -> tf.Tensor:
    """Blends an image on a white background.

    Row by row: as much memory as the result, not a multiple of it.

    Args:
        pixels: uint8 (h, w, 4), red, green, blue and alpha, not premultiplied.

    Returns:
        uint8 (h, w, 3), rounded to the nearest.
    """

    def row_on_white(row: tf.Tensor) -> tf.Tensor:
        row = tf.cast(row, tf.int32)
        color, alpha = row[:, :3], row[:, 3:]
        return tf.cast((color * alpha + 255 * (255 - alpha) + 127) // 255, tf.uint8)

    opaque = tf.reduce_min(pixels[..., 3]) == 255
    return tf.cond(
        opaque,
        lambda: pixels[..., :3],
        lambda: tf.map_fn(row_on_white, pixels, parallel_iterations=1),
    )
