"""WebP files, lossy, lossless, or with alpha; TensorFlow 2.20 is the first to decode them.

Animations are refused. Asked for their first frame alone, TensorFlow 2.20 writes all frames behind
one another into the memory of one (`DecodeImage` with `expand_animations=False`), and ends with
"free(): invalid next size" or worse; asked for all, it takes the memory of all.

Sources: RFC 9649 (WebP), sections 2.4 to 2.7; RFC 6386 (VP8), section 9.1.
"""

import tensorflow as tf

from kbert.images.byte_numbers import byte_vector, has_bytes, number
from kbert.images.limits import pixels_unless, size_problem
from kbert.images.transparency import on_white

_CHUNK = 12
_DATA = 20
# Sizes of lossy and lossless images have 14 bits.
_MOST = 1 << 14
_ANIMATION = 0x02  # of the flags of an extended file
_ANIMATED = "the WebP file must be a still image. Received: an animation"


def webp_pixels(image: tf.Tensor, max_pixels: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes a WebP file, and blends it on white where it is transparent.

    Arguments and results are those of `png_pixels`.
    """
    content = byte_vector(image)
    size = _size(content)
    problem = size_problem(size[0], size[1], max_pixels)
    problem = tf.where(_is_animated(content), _ANIMATED, problem)

    def decode() -> tf.Tensor:
        # Not the operation for WebP alone: a server of an older TensorFlow would not load it.
        pixels = tf.ensure_shape(tf.io.decode_image(image), (1, None, None, None))[0]
        return tf.cond(tf.shape(pixels)[2] == 4, lambda: on_white(pixels), lambda: pixels)

    return pixels_unless(problem, decode), problem


def _size(content: tf.Tensor) -> tf.Tensor:
    """Returns height and width by the first chunk, int64 (2,)."""
    extended = [number(content, at, 3, True) + 1 for at in (_DATA + 7, _DATA + 4)]
    packed = number(content, _DATA + 1, 4, True)
    lossless = [packed // divisor % _MOST + 1 for divisor in (_MOST, 1)]
    lossy = [number(content, at, 2, True) % _MOST for at in (_DATA + 8, _DATA + 6)]
    found = tf.where(has_bytes(content, _CHUNK, b"VP8L"), lossless, lossy)
    return tf.where(has_bytes(content, _CHUNK, b"VP8X"), extended, found)


def _is_animated(content: tf.Tensor) -> tf.Tensor:
    flags = number(content, _DATA, 1)
    return has_bytes(content, _CHUNK, b"VP8X") & (flags // _ANIMATION % 2 == 1)
