"""PNG files: their size from the header, pixels of any color type and depth on white.

Source: Portable Network Graphics (W3C recommendation, third edition), sections 5 and 11.
"""

import tensorflow as tf

from kbert.images.byte_numbers import MARGIN, byte_vector, number
from kbert.images.limits import pixels_unless, size_problem
from kbert.images.transparency import on_white

_FIRST_CHUNK = 8
_COLOR_TYPE = 25
_ALPHA_COLOR_TYPES = (4, 6)
# A chunk of pixels has 8 KB or more.
_MAX_CHUNKS = 50_000
_TOO_MANY = f"the PNG file must have at most {_MAX_CHUNKS} chunks. Received: more"
# Compressed texts are expanded by the decoder, up to 8 MB each, and thrown away.
_MAX_COMPRESSED = 32
_PLACES = (1 << 24, 1 << 16, 1 << 8, 1)
_ALPHA, _DATA, _END = (int.from_bytes(name, "big") for name in (b"tRNS", b"IDAT", b"IEND"))
_COMPRESSED = [int.from_bytes(name, "big") for name in (b"zTXt", b"iTXt")]


def png_pixels(image: tf.Tensor, max_pixels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes a PNG file, and blends it on white where it is transparent.

    Of 16-bit samples the upper 8 bits count.

    Args:
        image: the file, string ().
        max_pixels: the most pixels that the image may have, int64 ().

    Returns:
        (pixels, problem): uint8 (h, w, 3), and "" or what is wrong, string (); with a problem the
        pixels mean nothing. Fails, as TensorFlow's decoder does, where the data are broken.
    """
    content = byte_vector(image)
    size = size_problem(number(content, 20, 4), number(content, 16, 4), max_pixels)
    alpha, chunks = _chunks(content)
    problem = tf.where(size == "", chunks, size)
    color_type = number(content, _COLOR_TYPE, 1)
    alpha |= tf.reduce_any(color_type == tf.constant(_ALPHA_COLOR_TYPES, tf.int64))

    def decode() -> tf.Tensor:
        # TensorFlow adds a wrong alpha channel to images of a palette and less than 8 bits, so
        # that one is asked for only where the file has one.
        return tf.cond(
            alpha,
            lambda: on_white(tf.io.decode_png(image, 4)),
            lambda: tf.io.decode_png(image, 3),
        )

    return pixels_unless(problem, decode), problem


def _chunks(content: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Walks over the chunks of a file.

    Returns whether its colors have an alpha, bool (), and which chunks it has too many of, or "".
    """
    size = tf.size(content, tf.int64) - MARGIN

    def is_before_end(at: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        return at < size

    def advance(
        at: tf.Tensor, has_data: tf.Tensor, alpha: tf.Tensor, compressed: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        # Few operations: a large file has thousands of chunks.
        window = tf.reshape(tf.slice(content, [at], [8]), (2, 4))
        numbers = tf.cast(window, tf.int64) * tf.constant(_PLACES, tf.int64)
        length, name = tf.unstack(tf.reduce_sum(numbers, axis=1))
        is_compressed = tf.reduce_any(name == tf.constant(_COMPRESSED, tf.int64))
        return (
            at + tf.where(name == _END, size, 12 + length),
            has_data | (name == _DATA),
            alpha | ((name == _ALPHA) & ~has_data),
            compressed + tf.cast(is_compressed, tf.int64),
        )

    zero, no = tf.constant(0, tf.int64), tf.constant(False)
    start = (tf.constant(_FIRST_CHUNK, tf.int64), no, no, zero)
    at, _, alpha, compressed = tf.while_loop(
        is_before_end, advance, start, maximum_iterations=_MAX_CHUNKS
    )
    found = tf.strings.as_string(compressed)
    texts = f"the PNG file must have at most {_MAX_COMPRESSED} compressed texts. Received: "
    problem = tf.where(compressed > _MAX_COMPRESSED, tf.strings.join([texts, found]), "")
    return alpha, tf.where(at < size, _TOO_MANY, problem)
