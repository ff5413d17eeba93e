"""WebP files as Pillow reads them."""

from typing import Any

import numpy as np
import pytest
from PIL import Image, features

from kbert.images.decoding import decoded
from tests.images.image_files import (
    HEIGHT,
    WIDTH,
    check_pixels,
    encoded,
    photograph,
    problem_of,
    transparent,
)

pytestmark = pytest.mark.skipif(not features.check("webp"), reason="this Pillow has no WebP")


@pytest.mark.parametrize("lossless", [False, True])
def test_still_images(lossless: bool):
    check_pixels(encoded(photograph(), "WEBP", lossless=lossless))


@pytest.mark.parametrize("lossless", [False, True])
def test_alpha_is_blended_on_white(lossless: bool):
    check_pixels(encoded(transparent(), "WEBP", lossless=lossless))


def animation(first: Image.Image, **options: Any) -> bytes:
    """The file of a first frame and five others."""
    others = [first.rotate(20 * turn) for turn in range(1, 6)]
    return encoded(first, "WEBP", save_all=True, append_images=others, **options)


@pytest.mark.parametrize("lossless", [False, True])
@pytest.mark.parametrize("image", [photograph(), transparent(), transparent(7, 9)])
def test_the_first_frame_of_an_animation(image: Image.Image, lossless: bool):
    check_pixels(animation(image, lossless=lossless))


def frame_start(content: bytes) -> int:
    """The offset behind the header of the first frame's chunk."""
    return content.index(b"ANMF") + 8


def test_around_a_small_frame_the_image_is_white():
    content = bytearray(animation(photograph(), lossless=True))
    content[24:30] = bytes([99, 0, 0, 69, 0, 0])  # 100 x 70, of which the frame has 80 x 60
    start = frame_start(content)
    content[start : start + 6] = bytes([5, 0, 0, 3, 0, 0])  # halves: at column 10, row 6
    whole = Image.new("RGB", (100, 70), "white")
    whole.paste(photograph(), (10, 6))
    found, problems = decoded([bytes(content), encoded(whole, "PNG")], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b"", b""]
    assert np.array_equal(found[0], found[1])


def test_a_frame_beyond_the_image():
    content = bytearray(animation(photograph()))
    content[frame_start(content)] = 1
    message = "the WebP file's first frame must lie within the image. Received: a larger one"
    assert problem_of(bytes(content)) == message
    content = bytearray(animation(photograph()))
    content[frame_start(content) + 8] = 1
    assert problem_of(bytes(content)) == message


def test_an_animation_without_frames():
    content = animation(photograph())
    assert problem_of(content[: content.index(b"ANMF")])
    assert problem_of(content[: frame_start(content) + 100])


@pytest.mark.parametrize("keep", [12, 30, 100, -4])
def test_cut_off(keep: int):
    assert problem_of(encoded(photograph(), "WEBP")[:keep])


@pytest.mark.parametrize("lossless", [False, True])
def test_sizes_are_read_from_the_header(lossless: bool):
    content = bytearray(encoded(photograph(), "WEBP", lossless=lossless))
    if lossless:
        content[21:25] = b"\xff\xff\xff\x0f"  # 14 bits each, less one
    else:
        content[26:30] = b"\xff\x3f\xff\x3f"
    expected = "16384 x 16384" if lossless else "16383 x 16383"
    assert problem_of(bytes(content)) == (
        f"the image must have at most 40000000 pixels. Received: {expected} pixels"
    )


def test_the_canvas_of_an_extended_file():
    content = bytearray(encoded(transparent(), "WEBP"))
    assert content[12:16] == b"VP8X"
    content[24:30] = b"\xff\xff\xff\x00\x00\x01"
    assert problem_of(bytes(content)) == (
        "the image must have at most 40000000 pixels. Received: 65537 x 16777216 pixels"
    )
