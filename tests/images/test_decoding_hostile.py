"""Bytes that try to break a batch: no exception, and the good row beside stays bit for bit."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kbert.images.decoding import decoded
from tests.images.image_files import HEIGHT, WIDTH, encoded, few_colors, photograph, transparent

SMALL = photograph(10, 12)
FILES = [
    encoded(SMALL, "JPEG"),
    encoded(SMALL, "JPEG", progressive=True),
    encoded(SMALL.convert("CMYK"), "JPEG"),
    encoded(transparent(10, 12), "PNG"),
    encoded(few_colors(8), "GIF", transparency=2),
    encoded(few_colors(8), "BMP"),
    encoded(SMALL, "WEBP"),
    encoded(transparent(10, 12), "WEBP", lossless=True),
    encoded(SMALL, "WEBP", save_all=True, append_images=[SMALL.rotate(30)]),
]
BEGINNINGS = [b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"RIFF\0\0\0\0WEBPVP8"]
files = st.sampled_from(FILES)


@pytest.fixture(scope="module")
def good() -> tuple[bytes, np.ndarray]:
    content = encoded(photograph(), "JPEG")
    return content, decoded([content], HEIGHT, WIDTH)[0][0].numpy()


def check_batch(content: bytes, good: tuple[bytes, np.ndarray]) -> None:
    pixels, problems = (a.numpy() for a in decoded([good[0], content, good[0]], HEIGHT, WIDTH))
    assert np.array_equal(pixels[0], good[1]) and np.array_equal(pixels[2], good[1])
    assert problems[0] == problems[2] == b""
    assert np.isfinite(pixels).all() and pixels.min() >= 0 and pixels.max() <= 255
    assert problems[1] == b"" or not pixels[1].any()


@given(content=st.binary(max_size=300))
@example(content=b"\0" * 1000)
@example(content=b"\xff" * 1000)
def test_random_bytes(content: bytes, good):
    check_batch(content, good)


@given(beginning=st.sampled_from(BEGINNINGS), content=st.binary(max_size=300))
def test_random_bytes_behind_a_beginning(beginning: bytes, content: bytes, good):
    check_batch(beginning + content, good)


@given(content=files, keep=st.integers(0, 5000))
def test_truncations(content: bytes, keep: int, good):
    check_batch(content[: keep % len(content)], good)


@given(content=files, flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 7))))
def test_bit_flips(content: bytes, flips: list[tuple[int, int]], good):
    changed = bytearray(content)
    for place, bit in flips:
        changed[place % len(changed)] ^= 1 << bit
    check_batch(bytes(changed), good)


@given(content=files, at=st.integers(0, 63), changed=st.binary(min_size=1, max_size=8))
def test_changed_headers(content: bytes, at: int, changed: bytes, good):
    check_batch(content[:at] + changed + content[at + len(changed) :], good)


@given(content=files, start=st.integers(0, 500), end=st.integers(0, 500), times=st.integers(2, 50))
def test_repeated_parts(content: bytes, start: int, end: int, times: int, good):
    start, end = sorted((start % len(content), end % len(content)))
    check_batch(content[:start] + content[start:end] * times + content[end:], good)
