"""BMP files as Pillow reads them."""

import numpy as np
import pytest

from kbert.images.decoding import decoded
from tests.images.image_files import (
    HEIGHT,
    WIDTH,
    check_pixels,
    encoded,
    few_colors,
    photograph,
    problem_of,
)


@pytest.mark.parametrize("mode", ["1", "L", "P", "RGB"])
@pytest.mark.parametrize("width", [80, 77])  # rows end at multiples of four bytes
def test_depths(mode: str, width: int):
    check_pixels(encoded(photograph(60, width).convert(mode), "BMP"))


def test_4_bits():
    image = few_colors(16)
    content = bytearray(encoded(image, "BMP"))
    start = int.from_bytes(content[10:14], "little")
    rows = np.asarray(image)[::-1]
    content[28] = 4
    content[start:] = (rows[:, ::2] << 4 | rows[:, 1::2]).tobytes()
    found, problems = decoded([bytes(content), encoded(image, "BMP")], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b"", b""] and np.array_equal(found[0], found[1])


def test_a_fourth_channel_is_ignored():
    opaque = photograph().convert("RGBA")
    opaque.putalpha(100)
    found, problems = decoded([encoded(opaque, "BMP"), encoded(photograph(), "BMP")], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b"", b""] and np.array_equal(found[0], found[1])


def test_rows_from_the_top():
    content = bytearray(encoded(photograph(), "BMP"))
    upside_down = decoded([bytes(content)], HEIGHT, WIDTH)[0][:, ::-1]
    content[22:26] = (-60).to_bytes(4, "little", signed=True)
    found, problems = decoded([bytes(content)], HEIGHT, WIDTH)
    assert problems == b"" and np.allclose(found, upside_down, atol=1e-3)


def test_bytes_behind_the_image_are_ignored():
    check_pixels(encoded(photograph(), "BMP") + b"more")


@pytest.mark.parametrize("keep", [54, 300, -1])
def test_cut_off(keep: int):
    content = encoded(photograph(), "BMP")
    assert problem_of(content[:keep]) == (
        "the BMP file must be whole. Received: broken or cut off data"
    )


@pytest.mark.parametrize(
    ("at", "value", "received"),
    [(28, 16, "16 bits, compression 0"), (30, 1, "24 bits, compression 1"), (14, 12, "24 bits")],
)
def test_other_forms(at: int, value: int, received: str):
    content = bytearray(encoded(photograph(), "BMP"))
    content[at] = value
    assert problem_of(bytes(content)).startswith(
        "the BMP file must be uncompressed, of 1, 4, 8, 24 or 32 bits a pixel, with a header of at "
        f"least 40 bytes. Received: {received}"
    )


def test_sizes_beyond_the_limit():
    content = bytearray(encoded(photograph(), "BMP"))
    content[18:26] = b"\xff\xff\xff\x7f\x00\x00\x00\x80"
    assert problem_of(bytes(content)) == (
        "the image must have at most 40000000 pixels. Received: 2147483648 x 2147483647 pixels"
    )
