"""WebP files as Pillow reads them."""

import pytest
from PIL import features

from tests.images.image_files import check_pixels, encoded, photograph, problem_of, transparent

pytestmark = pytest.mark.skipif(not features.check("webp"), reason="this Pillow has no WebP")


@pytest.mark.parametrize("lossless", [False, True])
def test_still_images(lossless: bool):
    check_pixels(encoded(photograph(), "WEBP", lossless=lossless))


@pytest.mark.parametrize("lossless", [False, True])
def test_alpha_is_blended_on_white(lossless: bool):
    check_pixels(encoded(transparent(), "WEBP", lossless=lossless))


def test_animations_are_refused():
    others = [photograph().rotate(30)]
    content = encoded(photograph(), "WEBP", save_all=True, append_images=others)
    message = "the WebP file must be a still image. Received: an animation"
    assert problem_of(content) == message


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
