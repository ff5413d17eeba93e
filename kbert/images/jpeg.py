"""JPEG files: size, orientation and scans from their headers; pixels, at a smaller ratio if large.

Sources: ITU-T T.81 (JPEG), annex B, for markers; CIPA DC-008 (Exif 2.32), sections 4.5 and 4.6.4,
for the orientation.
"""

import functools
from typing import NamedTuple

import tensorflow as tf

from kbert.images.byte_numbers import MARGIN, byte_vector, count_bytes, has_bytes, number
from kbert.images.limits import pixels_unless, size_problem

_RATIOS = (1, 2, 4, 8)
# Pixels of the decoded image for each of the result, at least, where it is decoded at a smaller
# ratio: the filter of the resizing has the last word. Pillow's `reducing_gap` advises the same.
_GAP = 2
# Every scan of a JPEG passes over the whole image, and takes a few bytes only: the most pixels, as
# multiples of the largest image, that all scans of a file may pass over.
_MAX_SCANS = 20
# Segments before the image data. An encoder writes about ten, and a color profile of a megabyte 16.
_MAX_SEGMENTS = 256
_SCAN_MARKER = (0xFF, 0xDA)
_APP1 = 0xE1
_WINDOW = 10
# Second bytes of markers: of a segment with a length, of one that describes the frame (progressive
# ones come second in each four), of a marker alone; or of none, as any bytes may stand before a
# marker. The last two are 2 bytes long, and 1.
_SEGMENT, _FRAME, _PROGRESSIVE, _ALONE, _NO_MARKER = range(5)
_ORIENTATION_TAG = 0x0112
_MAX_TAGS = 256


def _kind(byte: int) -> int:
    if byte in (0x00, 0xFF):
        return _NO_MARKER
    if byte == 0x01 or 0xD0 <= byte <= 0xD9:
        return _ALONE
    if 0xC0 <= byte <= 0xCF and byte not in (0xC4, 0xC8, 0xCC):
        return _PROGRESSIVE if byte % 4 == 2 else _FRAME
    return _SEGMENT


_KINDS = [_kind(byte) for byte in range(256)]


class _Header(NamedTuple):
    """The part of a file before its image data.

    `at` is the offset of the first scan, or where the search for it ended; `exif` that of an Exif
    segment, 0 where there is none; `components` the number of color components; `progressive`
    whether there may be any number of scans.
    """

    at: tf.Tensor
    exif: tf.Tensor
    components: tf.Tensor
    progressive: tf.Tensor


def jpeg_pixels(
    image: tf.Tensor, max_pixels: tf.Tensor, height: tf.Tensor, width: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Decodes a JPEG file, turned upright by its Exif orientation.

    Args:
        image: the file, string ().
        max_pixels: the most pixels that the image may have, int64 ().
        height, width: int32 (), the size that the image is for: it is decoded at a half, a quarter
            or an eighth of its own where that is at least twice as large.

    Returns:
        (pixels, extent, problem): uint8 (h, w, 3); float32 (2,), the height and width of the image
        in these pixels, of which the last ones may reach beyond it; and "" or what is wrong,
        string (). With a problem the pixels mean nothing. Fails, as TensorFlow's decoder does,
        where the data are broken.
    """
    size = tf.image.extract_jpeg_shape(image, tf.int32)[:2]
    content = byte_vector(image)
    header = _header(content)
    problem = size_problem(size[0], size[1], max_pixels)
    scans = _scans_problem(content, header, size, max_pixels)
    problem = tf.where(problem == "", scans, problem)
    orientation = _orientation(content, header.exif)
    lies = orientation >= 5
    wanted = tf.where(lies, [width, height], [height, width])
    reduction = tf.reduce_min(size // wanted)
    branch = sum(tf.cast(reduction >= _GAP * ratio, tf.int32) for ratio in _RATIOS[1:])

    def at_ratio(ratio: int) -> tf.Tensor:
        # The accurate transform of the two, which other libraries use, too.
        return tf.io.decode_jpeg(image, 3, ratio, dct_method="INTEGER_ACCURATE")

    def decode() -> tf.Tensor:
        branches = [functools.partial(at_ratio, ratio) for ratio in _RATIOS]
        return _upright(tf.switch_case(branch, branches), orientation)

    extent = tf.cast(size, tf.float32) / tf.gather(tf.constant(_RATIOS, tf.float32), branch)
    extent = tf.where(lies, tf.reverse(extent, [0]), extent)
    return pixels_unless(problem, decode), extent, problem


def _header(content: tf.Tensor) -> _Header:
    """Walks over the segments up to the first scan."""

    def is_before_scan(at: tf.Tensor, *_: tf.Tensor) -> tf.Tensor:
        found = tf.slice(content, [tf.minimum(at, last)], [2])
        is_scan = tf.reduce_all(found == tf.constant(_SCAN_MARKER, tf.uint8))
        return ~is_scan & (at < last)

    def advance(
        at: tf.Tensor, exif: tf.Tensor, components: tf.Tensor, progressive: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        # Few operations: a small image is decoded in the time of a hundred.
        window = tf.cast(tf.slice(content, [at], [_WINDOW]), tf.int64)
        kind = tf.where(window[0] == 0xFF, tf.gather(tf.constant(_KINDS), window[1]), _NO_MARKER)
        segment = 2 + 256 * window[2] + window[3]
        step = tf.where(kind < _ALONE, segment, tf.cast(_NO_MARKER + 1 - kind, tf.int64))
        is_exif = tf.reduce_all(window[4:] == tf.constant([*b"Exif\0\0"], tf.int64))
        is_exif &= (window[1] == _APP1) & (exif == 0)
        is_frame = (kind == _FRAME) | (kind == _PROGRESSIVE)
        return (
            at + step,
            tf.where(is_exif, at, exif),
            tf.where(is_frame, window[9], components),
            progressive | (kind == _PROGRESSIVE),
        )

    last = tf.size(content, tf.int64) - MARGIN
    start = (tf.constant(2, tf.int64), tf.constant(0, tf.int64), tf.constant(0, tf.int64))
    found = tf.while_loop(
        is_before_scan, advance, (*start, tf.constant(False)), maximum_iterations=_MAX_SEGMENTS
    )
    return _Header(*found)


def _scans_problem(
    content: tf.Tensor, header: _Header, size: tf.Tensor, max_pixels: tf.Tensor
) -> tf.Tensor:
    """Returns what is wrong with the number of scans, or "".

    A file whose first scan has all components, and is not progressive, ends with it. Image data
    hold no byte pair of a marker, so that a pair behind the header is a scan, or by rare chance a
    part of something else.
    """
    is_scan = has_bytes(content, header.at, bytes(_SCAN_MARKER))
    is_whole = number(content, header.at + 4, 1) == header.components
    single = is_scan & is_whole & ~header.progressive

    def count() -> tf.Tensor:
        return count_bytes(content[header.at :], bytes(_SCAN_MARKER))

    scans = tf.cond(single, lambda: tf.constant(1, tf.int64), count)
    pixels = tf.reduce_prod(tf.cast(size, tf.int64))
    message = tf.strings.join(
        ["the JPEG file must have fewer scans. Received: ", tf.strings.as_string(scans), " scans"]
    )
    return tf.where(scans * pixels > _MAX_SCANS * max_pixels, message, "")


def _orientation(content: tf.Tensor, exif: tf.Tensor) -> tf.Tensor:
    """Returns the Exif orientation, 1 to 8, int64 (); 1 is upright, also where there is none."""
    start = exif + 10  # behind marker, length, and "Exif\0\0"
    little = has_bytes(content, start, b"II")
    directory = start + number(content, start + 4, 4, little)
    count = tf.minimum(number(content, directory, 2, little), _MAX_TAGS)
    entries = directory + 2 + 12 * tf.range(count)
    tags = number(content, entries, 2, little)
    values = number(content, entries + 8, 2, little)
    found = tf.concat([tf.boolean_mask(values, tags == _ORIENTATION_TAG), [1]], axis=0)[0]
    good = (exif > 0) & (found >= 1) & (found <= 8)
    return tf.where(good, found, 1)


def _upright(pixels: tf.Tensor, orientation: tf.Tensor) -> tf.Tensor:
    """Turns an image (h, w, 3) by its Exif orientation, of which 5 to 8 swap height and width."""
    pixels = tf.cond(orientation >= 5, lambda: tf.transpose(pixels, (1, 0, 2)), lambda: pixels)
    for axis, mirrored in ((1, (2, 3, 6, 7)), (0, (3, 4, 7, 8))):
        is_mirrored = tf.reduce_any(orientation == tf.constant(mirrored, tf.int64))
        pixels = tf.cond(
            is_mirrored, lambda p=pixels, a=axis: tf.reverse(p, [a]), lambda p=pixels: p
        )
    return pixels
