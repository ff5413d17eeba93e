import pytest
import tensorflow as tf

from kbert.images.formats import FORMATS, broken_problem, format_of, unknown_problem
from tests.images.image_files import encoded, photograph

EXPECTED = "the image must be the bytes of a file in JPEG, PNG, GIF, BMP or WebP. Received: "


def test_formats_by_first_bytes():
    files = [encoded(photograph(), name) for name in FORMATS]
    found = format_of(tf.constant([*files, b"", b"RIFF1234WAVE", b"\xff\xd8"]))
    assert found.numpy().tolist() == [0, 1, 2, 3, 4, 5, 5, 5]
    assert format_of(tf.constant([], tf.string)).shape == (0,)


@pytest.mark.parametrize(
    ("content", "received"),
    [
        (b"", "no bytes"),
        (b"photos/dog.jpg", "bytes that begin with 'photos/d'"),
        (b"cat", "bytes that begin with 'cat'"),
        (b"\x00\xe4\xff", "bytes that begin with 00e4ff"),
        (bytes(range(200, 220)), "bytes that begin with c8c9cacbcccdcecf"),
        (b"a\nb", "bytes that begin with 610a62"),
        (b"/9j/4AAQSkZJRgABAQ", "text in base64; decode it first"),
        (b"data:image/png;base64,iVBORw0KGgo", "text in base64; decode it first"),
        (b"II*\0\x08\0\0\0", "TIFF"),
        (b"\0\0\0\x1cftypavif", "AVIF"),
        (b"\0\0\0\x1cftypheic", "HEIF"),
        (b"%PDF-1.4", "PDF"),
    ],
)
def test_what_is_no_image(content: bytes, received: str):
    assert unknown_problem(tf.constant([content])).numpy()[0].decode() == EXPECTED + received


def test_no_rows():
    assert unknown_problem(tf.constant([], tf.string)).shape == (0,)


def test_broken_files_are_named_by_their_format():
    found = broken_problem(tf.constant([0, 4])).numpy().tolist()
    assert found == [
        b"the JPEG file must be whole. Received: broken or cut off data",
        b"the WebP file must be whole. Received: broken or cut off data",
    ]
