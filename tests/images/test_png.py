"""PNG files as Pillow reads them."""

import zlib

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from kbert.images.decoding import decoded
from tests.images.image_files import (
    HEIGHT,
    WIDTH,
    check_pixels,
    encoded,
    few_colors,
    photograph,
    png_chunk,
    png_file,
    problem_of,
    transparent,
)

BROKEN = "the PNG file must be whole. Received: broken or cut off data"
ROWS = zlib.compress(bytes(16 * 49))


@pytest.mark.parametrize("mode", ["RGB", "L", "1"])
def test_color_types(mode: str):
    check_pixels(encoded(photograph().convert(mode), "PNG"))


@pytest.mark.parametrize("colors", [2, 4, 16, 200])
def test_palettes_of_1_to_8_bits(colors: int):
    check_pixels(encoded(few_colors(colors), "PNG"))


@pytest.mark.parametrize("mode", ["RGBA", "LA"])
def test_alpha_is_blended_on_white(mode: str):
    check_pixels(encoded(transparent().convert(mode), "PNG"))


@pytest.mark.parametrize("colors", [2, 8, 200])
def test_a_transparent_color_of_a_palette_is_white(colors: int):
    check_pixels(encoded(few_colors(colors), "PNG", transparency=1))


def test_a_transparent_shade_or_color_is_white():
    gray = photograph().convert("L")
    check_pixels(encoded(gray, "PNG", transparency=int(np.asarray(gray)[5, 5])))
    color = tuple(np.asarray(photograph())[5, 5].tolist())
    check_pixels(encoded(photograph(), "PNG", transparency=color))


def test_16_bits():
    pixels = np.asarray(photograph()).astype(np.uint16) * 256 + 77
    check_pixels(encoded(Image.fromarray(pixels[..., 0]), "PNG"))
    found, problems = decoded([tf.io.encode_png(pixels).numpy()], HEIGHT, WIDTH)
    plain, _ = decoded([encoded(photograph(), "PNG")], HEIGHT, WIDTH)
    assert problems == b"" and np.array_equal(found, plain)


@pytest.mark.parametrize("keep", [8, 20, 40, 300, -8])
def test_cut_off(keep: int):
    content = encoded(photograph(), "PNG")
    problem = problem_of(content[:keep])
    assert problem == BROKEN or problem.startswith("the image must have pixels. Received: 0 x ")


def test_a_wrong_checksum():
    content = bytearray(encoded(photograph(), "PNG"))
    content[200] ^= 1
    assert problem_of(bytes(content)) == BROKEN


def test_bombs_are_not_decoded():
    rows = zlib.compress(bytes(20_000_000), 9)  # of 1.2 GB, in 20 KB
    assert problem_of(png_file(20_000, 20_000, rows)) == (
        "the image must have at most 40000000 pixels. Received: 20000 x 20000 pixels"
    )


def test_many_compressed_texts_are_not_expanded():
    texts = png_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(1000)))
    assert decoded([png_file(16, 16, ROWS, texts * 32)], HEIGHT, WIDTH)[1] == b""
    assert problem_of(png_file(16, 16, ROWS, texts * 33)) == (
        "the PNG file must have at most 32 compressed texts. Received: 33"
    )


def test_many_chunks_are_not_read():
    chunks = png_chunk(b"abCd", b"") * 50_000
    message = "the PNG file must have at most 50000 chunks. Received: more"
    assert problem_of(png_file(16, 16, ROWS, chunks)) == message


def test_alpha_of_a_palette_behind_the_pixels_is_none():
    content = encoded(few_colors(8), "PNG")
    end = content.index(b"IEND") - 4
    late = content[:end] + png_chunk(b"tRNS", b"\0\0\0") + content[end:]
    found, problems = decoded([late, content], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b"", b""] and np.array_equal(found[0], found[1])


def test_long_images_are_not_decoded():
    # Resized to 24 rows first, 39 million columns would take 11 GB.
    assert problem_of(png_file(1, 39_000_000, zlib.compress(bytes(1000)))) == (
        "the image must have sides of at most 65535 pixels. Received: 1 x 39000000 pixels"
    )


def test_one_pixel_and_one_row():
    check_pixels(encoded(photograph(1, 1), "PNG"))
    check_pixels(encoded(photograph(1, 80), "PNG"))
    check_pixels(encoded(photograph(60, 1), "PNG"))
