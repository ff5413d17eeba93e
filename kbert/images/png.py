"""PNG files: their size from the header, pixels of any color type and depth on white.

Source: Portable Network Graphics (W3C recommendation, third edition), sections 5 and 11.
"""

import tensorflow as tf

from kbert.images.byte_numbers import byte_vector, count_bytes, has_bytes, number
from kbert.images.limits import size_problem
from kbert.images.resizing import resized
from kbert.images.transparency import on_white

_FIRST_CHUNK = 8
_COLOR_TYPE = 25
_WITH_ALPHA = 4  # a bit of the color type
_MAX_CHUNKS = 1000
# Chunks of compressed text, which the decoder expands, up to 8 MB each, and throws away.
_COMPRESSED = (b"zTXt", b"iTXt")
_MAX_COMPRESSED = 32


def png_pixels(
    image: tf.Tensor, height: int, width: int, fit: str, max_pixels: int
) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes a PNG file, blends it on white where it is transparent, and resizes it.

    Of 16-bit samples the upper 8 bits count. Arguments and results are those of `jpeg_pixels`.
    """
    content = byte_vector(image)
    problem = size_problem(number(content, 20, 4), number(content, 16, 4), max_pixels)
    problem = tf.where(problem == "", _texts_problem(content), problem)

    def decode() -> tf.Tensor:
        # TensorFlow adds a wrong alpha channel to images of a palette and less than 8 bits, so
        # that one is asked for only where the file has one.
        pixels = tf.cond(
            _has_alpha(content),
            lambda: on_white(tf.io.decode_png(image, 4)),
            lambda: tf.io.decode_png(image, 3),
        )
        return resized(pixels[tf.newaxis], tf.constant([height, width]), fit)[0]

    return tf.cond(problem == "", decode, lambda: tf.zeros((height, width, 3))), problem


def _has_alpha(content: tf.Tensor) -> tf.Tensor:
    """Returns whether a file has an alpha channel, or a chunk with the alpha of its colors."""

    def is_before_data(at: tf.Tensor) -> tf.Tensor:
        ends = [has_bytes(content, at + 4, name) for name in (b"tRNS", b"IDAT")]
        return ~(ends[0] | ends[1]) & (at < tf.size(content, tf.int64))

    at = tf.while_loop(
        is_before_data,
        lambda at: (at + 12 + number(content, at, 4),),
        (tf.constant(_FIRST_CHUNK, tf.int64),),
        maximum_iterations=_MAX_CHUNKS,
    )[0]
    has_channel = number(content, _COLOR_TYPE, 1) // _WITH_ALPHA % 2 == 1
    return has_channel | has_bytes(content, at + 4, b"tRNS")


def _texts_problem(content: tf.Tensor) -> tf.Tensor:
    """Returns the message for a file with too many compressed texts, or ""."""
    count = tf.add_n([count_bytes(content, name) for name in _COMPRESSED])
    message = tf.strings.join(
        [
            f"the PNG file must have at most {_MAX_COMPRESSED} compressed texts. Received: ",
            tf.strings.as_string(count),
        ]
    )
    return tf.where(count > _MAX_COMPRESSED, message, "")
