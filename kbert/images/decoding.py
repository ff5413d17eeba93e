"""Encoded images -> pixels of one size, in the graph, where a broken image harms no other.

TensorFlow's decoders fail for a whole batch. Here each image is an element of a `tf.data` pipeline
inside of the graph, in which an element that fails is left out and the others are not; what was
left out is known from the places of those that are there. Sizes, formats and everything else that
can be known from an image's header are checked before it is decoded.

All operations are TensorFlow's own, and stateless, so that an export runs in TensorFlow Serving.
"""

import functools
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from kbert.images.bmp import bmp_pixels
from kbert.images.formats import FORMATS, broken_problem, format_of, unknown_problem
from kbert.images.gif import gif_pixels
from kbert.images.jpeg import jpeg_pixels
from kbert.images.png import png_pixels
from kbert.images.resizing import CHANNELS, check_size, resized
from kbert.images.webp import webp_pixels

MAX_PIXELS = 40_000_000
# Decoders of all formats but JPEG, in the order of `FORMATS`.
_OTHERS = (png_pixels, gif_pixels, bmp_pixels, webp_pixels)
_UNKNOWN = "unknown"
# The place of an element that is no image, so that the pipeline is never empty.
_NOWHERE = -1


def decoded(
    images: Any,
    height: int,
    width: int,
    fit: str = "squeeze",
    max_pixels: int = MAX_PIXELS,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes images, and brings them to one size.

    The whole image is shown by default: captions name what is at its borders, which "crop" would
    cut off. Transparent images are blended on white, and JPEG files turned upright by their Exif
    orientation; color profiles are ignored.

    Args:
        images: strings (B,), each the bytes of a file: JPEG, PNG, GIF and WebP (the first frame of
            an animation), or BMP. Or pixels, uint8 (B, h, w, 3), which are only resized.
        height, width: of the result, in pixels.
        fit: "squeeze", the whole image, with another aspect ratio; or "crop", its center in the
            aspect ratio that it has.
        max_pixels: the most pixels that an image may have, height times width; what is larger is
            not decoded, and is a problem of its row, as is one with a side of more than 65,535.
            Images are decoded one by one; one of 40 million takes up to 700 MB meanwhile.

    Returns:
        (pixels, problems): float32 (B, height, width, 3), red, green and blue in 0..255, and
        strings (B,), "" for an image that is well, and otherwise a message; its pixels are zeros.
    """
    check_size(height, width, fit)
    if max_pixels < 1:
        raise ValueError(f"`max_pixels` must be at least 1. Received: max_pixels={max_pixels}")
    images = tf.convert_to_tensor(images)
    if images.dtype == tf.uint8:
        return _resized_pixels(images, height, width, fit)
    if images.dtype != tf.string or images.shape.rank != 1:
        raise ValueError(
            "`images` must be strings (B,), encoded images, or uint8 (B, h, w, 3), pixels. "
            f"Received: dtype={images.dtype.name}, shape={images.shape}"
        )
    most = tf.constant(max_pixels, tf.int64)
    pixels, problems = _graph(fit)(images, tf.constant([height, width]), most)
    return tf.ensure_shape(pixels, (None, height, width, CHANNELS)), problems


def _resized_pixels(
    images: tf.Tensor, height: int, width: int, fit: str
) -> tuple[tf.Tensor, tf.Tensor]:
    if images.shape.rank != 4 or images.shape[-1] != CHANNELS or 0 in images.shape[1:3]:
        raise ValueError(
            "`images` must have the shape (B, h, w, 3) where they are pixels. Received: "
            f"shape={images.shape}"
        )
    pixels = resized(images, tf.constant([height, width]), fit)
    return pixels, tf.fill(tf.shape(images)[:1], "")


@functools.cache
def _graph(fit: str) -> Any:
    """Returns a graph function of strings (B,), the size and the limit: to trace it takes seconds.

    So there is one for all sizes, int32 (2,), and limits, int64 ().
    """

    def jpeg(image: tf.Tensor, size: tf.Tensor, most: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return jpeg_pixels(image, most, size[0], size[1])

    def other(
        decode: Callable[..., Any], image: tf.Tensor, size: tf.Tensor, most: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        pixels, problem = decode(image, most)
        return pixels, tf.cast(tf.shape(pixels)[:2], tf.float32), problem

    def unknown(image: tf.Tensor, size: tf.Tensor, most: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tf.zeros((1, 1, CHANNELS), tf.uint8), tf.ones(2), tf.constant(_UNKNOWN)

    decoders: list[Any] = [jpeg, *(functools.partial(other, decode) for decode in _OTHERS), unknown]

    def row(
        size: tf.Tensor, most: tf.Tensor, place: tf.Tensor, image: tf.Tensor, kind: tf.Tensor
    ) -> tuple[tf.Tensor, ...]:
        branches = [functools.partial(decode, image, size, most) for decode in decoders]
        pixels, extent, problem = tf.switch_case(kind, branches)

        def fitted() -> tf.Tensor:
            return resized(pixels[tf.newaxis], size, fit, extent)[0]

        found = tf.cond(problem == "", fitted, lambda: tf.zeros((size[0], size[1], CHANNELS)))
        return place, tf.ensure_shape(found, (None, None, CHANNELS)), problem

    def graph(
        images: tf.Tensor, size: tf.Tensor, most: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor]:
        kinds = format_of(images)
        count = tf.size(images)
        places = tf.concat([tf.range(count), [_NOWHERE]], axis=0)
        elements = (places, tf.concat([images, [""]], 0), tf.concat([kinds, [len(FORMATS)]], 0))
        rows = tf.data.Dataset.from_tensor_slices(elements)
        # One by one, for the memory: a server answers several requests at a time anyway.
        rows = rows.map(functools.partial(row, size, most), num_parallel_calls=None).ignore_errors()
        where, pixels, problems = rows.batch(tf.cast(count, tf.int64) + 1).get_single_element()
        is_image = where != _NOWHERE
        where = tf.boolean_mask(where, is_image)[:, tf.newaxis]
        shape = (count, size[0], size[1], CHANNELS)
        found = tf.scatter_nd(where, tf.boolean_mask(pixels, is_image), shape)
        messages = tf.tensor_scatter_nd_update(
            broken_problem(kinds), where, tf.boolean_mask(problems, is_image)
        )
        is_unknown = kinds == len(FORMATS)
        return found, tf.where(is_unknown, unknown_problem(images), messages)

    specs = [
        tf.TensorSpec((None,), tf.string),
        tf.TensorSpec((2,), tf.int32),
        tf.TensorSpec((), tf.int64),
    ]
    return tf.function(graph, input_signature=specs, autograph=False)
