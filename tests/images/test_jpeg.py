"""JPEG files as Pillow reads them, and files that only look like one."""

import numpy as np
import pytest
from PIL import Image

from kbert.images.decoding import decoded
from tests.images.image_files import HEIGHT, WIDTH, check_pixels, encoded, photograph, problem_of

BROKEN = "the JPEG file must be whole. Received: broken or cut off data"


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@pytest.mark.parametrize("progressive", [False, True])
def test_color_spaces(mode: str, progressive: bool):
    check_pixels(encoded(photograph().convert(mode), "JPEG", progressive=progressive))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("order", ["<", ">"])
def test_turned_upright(orientation: int, order: str):
    exif = Image.Exif()
    exif.endian = order
    exif[0x010F] = "a maker"
    exif[0x0112] = orientation
    check_pixels(encoded(photograph(), "JPEG", exif=exif))


def test_an_orientation_that_does_not_exist_is_none():
    exif = Image.Exif()
    exif[0x0112] = 6
    content = encoded(photograph(), "JPEG", exif=exif)
    plain = decoded([encoded(photograph(), "JPEG")], HEIGHT, WIDTH)[0]
    entry = content.index(b"\x01\x12\x00\x03\x00\x00\x00\x01") + 8
    for value in (b"\x00\x09", b"\xff\xff", b"\x00\x00"):
        strange = content[:entry] + value + content[entry + 2 :]
        pixels, problems = decoded([strange], HEIGHT, WIDTH)
        assert problems == b"" and np.array_equal(pixels, plain)


def test_a_broken_exif_segment_is_no_problem():
    exif = Image.Exif()
    exif[0x0112] = 6
    content = encoded(photograph(), "JPEG", exif=exif)
    start = content.index(b"Exif") + 6
    for offset in (b"\xff\xff\xff\xff", b"\x00\x00\xff\xff"):  # of the first directory
        strange = content[: start + 4] + offset + content[start + 8 :]
        assert decoded([strange], HEIGHT, WIDTH)[1] == b""


@pytest.mark.parametrize("times", [2, 5, 9, 20])
def test_large_images_are_decoded_at_a_smaller_ratio(times: int):
    # Not multiples of 8: the last block of the smaller image reaches beyond the image.
    content = encoded(photograph(HEIGHT * times + 3, WIDTH * times + 5), "JPEG", quality=95)
    check_pixels(content, most=4.0)


def test_20_megapixels():
    check_pixels(encoded(photograph(3700, 5405), "JPEG"), most=4.0)


def test_bytes_between_segments_are_skipped():
    content = encoded(photograph(), "JPEG")
    check_pixels(content[:2] + b"\xff\xff" + content[2:])


@pytest.mark.parametrize("keep", [3, 30, 300, -300, -2])
def test_cut_off(keep: int):
    content = encoded(photograph(), "JPEG")
    assert problem_of(content[:keep]) == BROKEN


def test_many_scans_are_not_decoded():
    content = encoded(photograph(2000, 2000), "JPEG", progressive=True)
    last = content.rindex(b"\xff\xda")
    scans = content[last:-2] * 300
    message = problem_of(content[:-2] + scans + content[-2:])
    assert message == "the JPEG file must have fewer scans. Received: 310 scans"
    assert decoded([content], HEIGHT, WIDTH)[1] == b""


def test_scans_that_only_look_like_ones():
    # Behind the image of a single scan anything may follow, such as a film.
    content = encoded(photograph(2000, 2000), "JPEG") + b"\xff\xda" * 500
    assert decoded([content], HEIGHT, WIDTH)[1] == b""


def test_sizes_beyond_the_limit():
    content = bytearray(encoded(photograph(), "JPEG"))
    frame = content.index(b"\xff\xc0") + 5
    content[frame : frame + 4] = b"\xff\xdc\xff\xdc"
    assert problem_of(bytes(content)) == (
        "the image must have at most 40000000 pixels. Received: 65500 x 65500 pixels"
    )
