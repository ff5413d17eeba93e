"""WebP files, lossy, lossless, or with alpha; TensorFlow 2.20 is the first to decode them.

The first frame of an animation is cut out of the file and decoded as a still image. Asked for it,
TensorFlow 2.20 writes all frames behind one another into the memory of one (`DecodeImage` with
`expand_animations=False`), and ends with "free(): invalid next size" or worse; asked for all
frames, it takes the memory of all.

Sources: RFC 9649 (WebP), sections 2.3 to 2.7; RFC 6386 (VP8), section 9.1.
"""

from typing import NamedTuple

import tensorflow as tf

from kbert.images.byte_numbers import MARGIN, byte_vector, has_bytes, number
from kbert.images.limits import pixels_unless, size_problem
from kbert.images.transparency import on_white

_CHUNK = 12
_DATA = 20
# Sizes of lossy and lossless images have 14 bits.
_MOST = 1 << 14
_ANIMATION = 0x02  # of the flags of an extended file
_FIRST_CHUNK = 30  # behind the header of an extended file
_CHUNK_HEADER, _FRAME_HEADER = 8, 16
_FRAME = int.from_bytes(b"ANMF", "big")
# Chunks before the first frame are two, a color profile and the animation's settings.
_MAX_CHUNKS = 64
_OUTSIDE = "the WebP file's first frame must lie within the image. Received: a larger one"
_WHITE = 255
_BYTES = [bytes([byte]) for byte in range(256)]
# The header of an extended file up to its size: "VP8X", 10 bytes, which may have alpha.
_EXTENDED = b"WEBPVP8X\x0a\0\0\0\x10\0\0\0"


class _Frame(NamedTuple):
    """A frame of an animation: offset and length of its chunk, and its place, each int64 ()."""

    at: tf.Tensor
    length: tf.Tensor
    top: tf.Tensor
    left: tf.Tensor
    rows: tf.Tensor
    columns: tf.Tensor


def webp_pixels(image: tf.Tensor, max_pixels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes a WebP file, of an animation the first frame, and blends it on white.

    Arguments and results are those of `png_pixels`.
    """
    content = byte_vector(image)
    size = _size(content)
    animated = has_bytes(content, _CHUNK, b"VP8X")
    animated &= number(content, _DATA, 1) // _ANIMATION % 2 == 1
    frame = _first_frame(content)
    is_outside = (frame.top + frame.rows > size[0]) | (frame.left + frame.columns > size[1])
    problem = size_problem(size[0], size[1], max_pixels)
    problem = tf.where((problem == "") & animated & is_outside, _OUTSIDE, problem)

    def still() -> tf.Tensor:
        # Not the operation for WebP alone: a server of an older TensorFlow would not load it.
        file = tf.cond(animated, lambda: _frame_file(image, frame), lambda: image)
        pixels = tf.ensure_shape(tf.io.decode_image(file), (1, None, None, None))[0]
        return tf.cond(tf.shape(pixels)[2] == 4, lambda: on_white(pixels), lambda: pixels)

    def decode() -> tf.Tensor:
        return tf.cond(animated, lambda: _on_canvas(still(), frame, size), still)

    return pixels_unless(problem, decode), problem


def _size(content: tf.Tensor) -> tf.Tensor:
    """Returns height and width by the first chunk, int64 (2,)."""
    extended = [number(content, at, 3, True) + 1 for at in (_DATA + 7, _DATA + 4)]
    packed = number(content, _DATA + 1, 4, True)
    lossless = [packed // divisor % _MOST + 1 for divisor in (_MOST, 1)]
    lossy = [number(content, at, 2, True) % _MOST for at in (_DATA + 8, _DATA + 6)]
    found = tf.where(has_bytes(content, _CHUNK, b"VP8L"), lossless, lossy)
    return tf.where(has_bytes(content, _CHUNK, b"VP8X"), extended, found)


def _first_frame(content: tf.Tensor) -> _Frame:
    """Walks to the first frame of an animation; without one, to anything."""

    def is_before(at: tf.Tensor) -> tf.Tensor:
        return (number(content, at, 4) != _FRAME) & (at < tf.size(content, tf.int64) - MARGIN)

    def advance(at: tf.Tensor) -> tuple[tf.Tensor]:
        length = number(content, at + 4, 4, True)
        return (at + _CHUNK_HEADER + length + length % 2,)

    start = (tf.constant(_FIRST_CHUNK, tf.int64),)
    (at,) = tf.while_loop(is_before, advance, start, maximum_iterations=_MAX_CHUNKS)
    places = at + _CHUNK_HEADER + 3 * tf.range(4, dtype=tf.int64)
    left, top, columns, rows = tf.unstack(number(content, places, 3, True))
    length = number(content, at + 4, 4, True)
    return _Frame(at, length, 2 * top, 2 * left, rows + 1, columns + 1)


def _frame_file(image: tf.Tensor, frame: _Frame) -> tf.Tensor:
    """Returns a frame as a file of a still image, string ()."""
    start = frame.at + _CHUNK_HEADER
    size = tf.strings.substr(image, start + 6, tf.constant(6, tf.int64))
    data = tf.strings.substr(image, start + _FRAME_HEADER, frame.length - _FRAME_HEADER)
    rest = tf.strings.join([_EXTENDED, size, data])
    length = tf.strings.length(rest)
    digits = [length // 256**power % 256 for power in range(4)]
    return tf.strings.join([b"RIFF", tf.strings.reduce_join(tf.gather(_BYTES, digits)), rest])


def _on_canvas(pixels: tf.Tensor, frame: _Frame, size: tf.Tensor) -> tf.Tensor:
    """Returns a frame at its place on a white image."""
    below = size[0] - frame.top - frame.rows
    behind = size[1] - frame.left - frame.columns
    around = [[frame.top, below], [frame.left, behind], [0, 0]]
    return tf.pad(pixels, around, constant_values=tf.constant(_WHITE, tf.uint8))
