"""GIF files: the first frame, as Pillow reads it, however many follow."""

import numpy as np
import pytest
from PIL import Image

from kbert.images.decoding import decoded
from tests.images.image_files import HEIGHT, WIDTH, check_pixels, encoded, few_colors, problem_of


def frame_start(content: bytes) -> int:
    """The offset of the first frame of a file of 8 colors, by the lengths of its blocks."""
    at = 13 + 3 * 8
    while content[at] == 0x21:
        at += 2
        while content[at]:
            at += content[at] + 1
        at += 1
    assert content[at : at + 1] == b","
    return at


@pytest.mark.parametrize("colors", [2, 8, 200])
@pytest.mark.parametrize("interlace", [0, 1])
def test_still_images(colors: int, interlace: int):
    check_pixels(encoded(few_colors(colors), "GIF", interlace=interlace))


def test_a_transparent_color_is_white():
    check_pixels(encoded(few_colors(8), "GIF", transparency=3))


def test_the_first_frame_of_an_animation():
    image = few_colors(8)
    others = [image.rotate(30), image.rotate(60)]
    check_pixels(encoded(image, "GIF", save_all=True, append_images=others))


def test_frames_behind_the_first_are_not_decoded():
    content = encoded(few_colors(8), "GIF")
    start = frame_start(content)
    huge = b",\0\0\0\0\xff\xff\xff\xff" + content[start + 9 : -1]
    animation = content[:-1] + huge * 20 + b";"
    found, problems = decoded([animation, content, content + b"more"], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b""] * 3
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_a_frame_with_a_table_of_its_own():
    image = few_colors(8)
    content = encoded(image, "GIF", transparency=3)
    start = frame_start(content)
    table = content[13:37]
    flags = bytes([content[10] & 0x7F])
    own = bytes([content[start + 9] | 0x80 | 2])
    header = content[:10] + flags + content[11:13] + content[37:start]
    moved = header + content[start : start + 9] + own + table + content[start + 10 :]
    check_pixels(moved)
    pair, problems = decoded([content, moved], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b"", b""] and np.array_equal(pair[0], pair[1])


def test_around_a_small_frame_the_screen_is_white():
    # Red, 2 x 3 pixels, at (1, 2) of a screen of 24 x 32, written by hand: clear, six times color
    # 1, end; codes of 3 bits until the table has 8 entries.
    codes = [4, 1, 1, 1, 1, 1, 1, 5]
    widths = [3, 3, 3, 3, 4, 4, 4, 4]
    bits = sum(code << sum(widths[:i]) for i, code in enumerate(codes))
    data = bits.to_bytes((sum(widths) + 7) // 8, "little")
    header = b"GIF89a" + bytes([WIDTH, 0, HEIGHT, 0, 0x81, 0, 0])
    table = b"\0\0\0\xff\0\0\0\xff\0\0\0\xff"
    frame = b"," + bytes([1, 0, 2, 0, 3, 0, 2, 0, 0, 2, len(data)]) + data + b"\0"
    content = header + table + frame + b";"
    found, problems = decoded([content], HEIGHT, WIDTH)
    expected = np.full((HEIGHT, WIDTH, 3), 255)
    expected[2:4, 1:4] = [255, 0, 0]
    assert problems == b"" and np.array_equal(found[0], expected)


def test_screens_beyond_the_limit():
    content = bytearray(encoded(few_colors(8), "GIF"))
    content[6:10] = b"\xff\xff\xff\xff"
    assert problem_of(bytes(content)) == (
        "the image must have at most 40000000 pixels. Received: 65535 x 65535 pixels"
    )


@pytest.mark.parametrize("keep", [6, 13, 50, 300, -2])
def test_cut_off(keep: int):
    content = encoded(few_colors(8), "GIF")
    assert problem_of(content[:keep]) == (
        "the GIF file must have a whole frame. Received: none"
    )


def test_without_any_colors():
    content = encoded(few_colors(8), "GIF")
    bare = content[:10] + b"\0" + content[11:13] + content[37:]
    assert problem_of(bare) == "the GIF file must be whole. Received: broken or cut off data"


def test_a_frame_without_pixels():
    content = bytearray(encoded(few_colors(8), "GIF"))
    start = frame_start(bytes(content))
    content[start + 5 : start + 9] = b"\0\0\0\0"
    assert problem_of(bytes(content)) == (
        "the GIF file's first frame must have pixels. Received: none"
    )


def test_a_gray_photograph_of_all_shades():
    check_pixels(encoded(Image.linear_gradient("L"), "GIF"))
