"""BMP files without compression, of a palette or of 24 or 32 bits a pixel.

They are read by operations on their bytes: TensorFlow's own decoder takes the numbers of a palette
for shades of gray.

Source: Microsoft, "Bitmap Storage" (BITMAPFILEHEADER, BITMAPINFOHEADER).
"""

import tensorflow as tf

from kbert.images.byte_numbers import MARGIN, byte_vector, number
from kbert.images.limits import pixels_unless, size_problem

_FILE_HEADER = 14
_LEAST_INFO_HEADER = 40
_BITS = (1, 4, 8, 24, 32)
# Compression 3 names the bits of each color, which are the usual ones of 32 bits nearly always.
_PLAIN, _BIT_FIELDS = 0, 3


def bmp_pixels(image: tf.Tensor, max_pixels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes a BMP file; a fourth channel is ignored, as most programs do.

    Arguments and results are those of `png_pixels`.
    """
    content = byte_vector(image)
    columns = _signed(number(content, 18, 4, True))
    signed_rows = _signed(number(content, 22, 4, True))
    rows = tf.abs(signed_rows)
    bits = number(content, 28, 2, True)
    problem = _form_problem(content, bits)
    problem = tf.where(problem == "", size_problem(rows, columns, max_pixels), problem)

    def decode() -> tf.Tensor:
        start = number(content, 10, 4, True)
        stride = (columns * bits + 31) // 32 * 4
        # Behind the content is a margin of zeros, which is no part of the image.
        lines = tf.reshape(content[:-MARGIN][start : start + rows * stride], (rows, stride))
        pixels = tf.cond(
            bits >= 24,
            lambda: _colors(lines, columns, bits // 8),
            lambda: tf.gather(_palette(content), _indices(lines, columns, bits)),
        )
        return tf.cond(signed_rows > 0, lambda: tf.reverse(pixels, [0]), lambda: pixels)

    return pixels_unless(problem, decode), problem


def _signed(value: tf.Tensor) -> tf.Tensor:
    """Returns an unsigned number of 32 bits as a signed one."""
    return tf.where(value >= 1 << 31, value - (1 << 32), value)


def _form_problem(content: tf.Tensor, bits: tf.Tensor) -> tf.Tensor:
    """Returns which form of BMP cannot be read, or ""."""
    compression = number(content, 30, 4, True)
    fields = (compression == _BIT_FIELDS) & (bits == 32)
    is_plain = (compression == _PLAIN) | fields
    is_known = tf.reduce_any(bits == tf.constant(_BITS, tf.int64))
    header = number(content, _FILE_HEADER, 4, True)
    is_new = header >= _LEAST_INFO_HEADER
    message = tf.strings.join(
        [
            "the BMP file must be uncompressed, of 1, 4, 8, 24 or 32 bits a pixel, with a header "
            f"of at least {_LEAST_INFO_HEADER} bytes. Received: ",
            tf.strings.as_string(bits),
            " bits, compression ",
            tf.strings.as_string(compression),
            ", a header of ",
            tf.strings.as_string(header),
            " bytes",
        ]
    )
    return tf.where(is_plain & is_known & is_new, "", message)


def _colors(lines: tf.Tensor, columns: tf.Tensor, channels: tf.Tensor) -> tf.Tensor:
    """Returns uint8 (h, w, 3) of rows of blue, green, red, and possibly something else."""
    used = lines[:, : columns * channels]
    used = tf.reshape(used, (tf.shape(lines, tf.int64)[0], columns, channels))
    return tf.reverse(used[..., :3], [2])


def _indices(lines: tf.Tensor, columns: tf.Tensor, bits: tf.Tensor) -> tf.Tensor:
    """Returns the places in the palette of rows of 1, 4 or 8 bits a pixel, int32 (h, w)."""

    def unpacked(width: int) -> tf.Tensor:
        shifts = tf.constant([*range(8 - width, -1, -width)], tf.uint8)
        each = tf.bitwise.right_shift(lines[..., tf.newaxis], shifts)
        each = tf.bitwise.bitwise_and(each, tf.constant(2**width - 1, tf.uint8))
        return tf.reshape(each, (tf.shape(lines)[0], -1))

    found = tf.case(
        [(bits == 1, lambda: unpacked(1)), (bits == 4, lambda: unpacked(4))], lambda: lines
    )
    return tf.cast(found[:, :columns], tf.int32)


def _palette(content: tf.Tensor) -> tf.Tensor:
    """Returns the colors of a palette, uint8 (256, 3); where it is shorter, other bytes follow."""
    start = _FILE_HEADER + number(content, _FILE_HEADER, 4, True)
    entries = start + 4 * tf.range(256, dtype=tf.int64)
    channels = [number(content, entries + channel, 1) for channel in (2, 1, 0)]
    return tf.cast(tf.stack(channels, axis=-1), tf.uint8)
