"""GIF files: the first frame, cut out of the file before it is decoded.

TensorFlow decodes all frames before it takes one, each as large as its header claims. What it
gets is therefore a file of one frame, on a screen of the same size.

Source: CompuServe, "Graphics Interchange Format, version 89a".
"""

from typing import NamedTuple

import tensorflow as tf

from kbert.images.byte_numbers import MARGIN, byte_vector, number
from kbert.images.limits import pixels_unless, size_problem

_HEADER = 13
_EXTENSION, _FRAME, _CONTROL = 0x21, 0x2C, 0xF9
_FRAME_HEADER = 10
# A block has at most 255 bytes: a first frame of 12 MB.
_MAX_BLOCKS = 50_000
_WHITE = 255
_NO_PIXELS = "the GIF file's first frame must have pixels. Received: none"
_NO_FRAME = "the GIF file must have a whole frame. Received: none"


class _FirstFrame(NamedTuple):
    """Offsets of the first frame and of what is behind it, and its transparent color, or -1."""

    start: tf.Tensor
    end: tf.Tensor
    transparent: tf.Tensor


def gif_pixels(image: tf.Tensor, max_pixels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes the first frame of a GIF file, on a white screen.

    Arguments and results are those of `png_pixels`.
    """
    content = byte_vector(image)
    first = _first_frame(content)
    left, top, columns, rows = (
        number(content, first.start + 1 + 2 * place, 2, True) for place in range(4)
    )
    screen = [number(content, at, 2, True) for at in (8, 6)]
    screen = tf.maximum(screen, [top + rows, left + columns])
    problem = size_problem(screen[0], screen[1], max_pixels)
    problem = tf.where((rows > 0) & (columns > 0), problem, _NO_PIXELS)
    problem = tf.where(first.end > 0, problem, _NO_FRAME)

    def decode() -> tf.Tensor:
        pixels = tf.io.decode_gif(_single_frame(image, content, first))[0]
        below, behind = screen[0] - top - rows, screen[1] - left - columns
        around = [[top, below], [left, behind], [0, 0]]
        return tf.pad(pixels, around, constant_values=tf.constant(_WHITE, tf.uint8))

    return pixels_unless(problem, decode), problem


def _table_length(flags: tf.Tensor) -> tf.Tensor:
    """Returns the bytes of a color table by the flags before it; 0 where there is none."""
    length = 3 * tf.bitwise.left_shift(tf.constant(2, tf.int64), flags & 7)
    return tf.where(flags >= 0x80, length, 0)


def _first_frame(content: tf.Tensor) -> _FirstFrame:
    """Walks over the blocks up to the end of the first frame; `end` is 0 where there is none."""
    size = tf.size(content, tf.int64) - MARGIN

    def is_before_end(
        at: tf.Tensor, inside: tf.Tensor, start: tf.Tensor, end: tf.Tensor, transparent: tf.Tensor
    ) -> tf.Tensor:
        return (end == 0) & (at < size)

    def advance(
        at: tf.Tensor, inside: tf.Tensor, start: tf.Tensor, end: tf.Tensor, transparent: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        # Few operations: a frame has thousands of blocks.
        window = tf.cast(tf.slice(content, [at], [_FRAME_HEADER]), tf.int64)
        is_extension = ~inside & (window[0] == _EXTENSION)
        is_frame = ~inside & (window[0] == _FRAME)
        is_last = inside & (window[0] == 0)
        is_control = is_extension & (window[1] == _CONTROL)
        color = tf.where(window[3] % 2 == 1, window[6], -1)
        length = tf.where(inside, window[0] + 1, 1)
        length = tf.where(~is_extension, length, 2)
        table = _table_length(window[9])
        length = tf.where(~is_frame, length, _FRAME_HEADER + table + 1)
        return (
            at + length,
            (inside & ~is_last) | is_extension | is_frame,
            tf.where(is_frame, at, start),
            tf.where(is_last & (start > 0), at + 1, end),
            tf.where(is_control, color, transparent),
        )

    begin = _HEADER + _table_length(number(content, 10, 1))
    zero = tf.constant(0, tf.int64)
    _, _, start, end, transparent = tf.while_loop(
        is_before_end,
        advance,
        (begin, tf.constant(False), zero, zero, tf.constant(-1, tf.int64)),
        maximum_iterations=_MAX_BLOCKS,
    )
    return _FirstFrame(start, end, transparent)


def _single_frame(image: tf.Tensor, content: tf.Tensor, first: _FirstFrame) -> tf.Tensor:
    """Returns a GIF file of one frame, string (), whose transparent color is white."""

    def part(start: tf.Tensor | int, end: tf.Tensor | int) -> tf.Tensor:
        start, end = tf.cast(start, tf.int64), tf.cast(end, tf.int64)
        return tf.strings.substr(image, start, end - start)

    own_table = _table_length(number(content, first.start + 9, 1))
    shared_table = _table_length(number(content, 10, 1))
    table = tf.where(own_table > 0, first.start + _FRAME_HEADER, _HEADER)
    length = tf.where(own_table > 0, own_table, shared_table)
    before = tf.strings.join(
        [
            part(0, 6),
            part(first.start + 5, first.start + 9),
            part(10, _HEADER + shared_table),
            part(first.start, first.start + 1),
            b"\0\0\0\0",
            part(first.start + 5, first.end),
            b";",
        ]
    )
    # The table of the frame moved by what was left out between the tables.
    moved = tf.where(own_table > 0, _HEADER + shared_table + _FRAME_HEADER, table)
    place = moved + 3 * first.transparent
    is_inside = (first.transparent >= 0) & (3 * first.transparent < length)

    def whitened() -> tf.Tensor:
        head = tf.strings.substr(before, tf.zeros_like(place), place)
        length = tf.cast(tf.strings.length(before), tf.int64)
        rest = tf.strings.substr(before, place + 3, length)
        return tf.strings.join([head, b"\xff\xff\xff", rest])

    return tf.cond(is_inside, whitened, lambda: before)
