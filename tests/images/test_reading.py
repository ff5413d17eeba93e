from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from kbert.images.decoding import decoded
from kbert.images.reading import read_images
from tests.images.image_files import HEIGHT, WIDTH, encoded, photograph, reference, transparent


def test_files_bytes_and_pixels_in_one_list(tmp_path: Path):
    content = encoded(photograph(), "PNG")
    path = tmp_path / "a photograph.png"
    path.write_bytes(content)
    gray = np.asarray(photograph().convert("L"))
    alpha = np.asarray(transparent())
    images = [path, str(path), content, photograph(), tf.constant(np.asarray(photograph()))]
    images += [gray, gray[..., np.newaxis], alpha, np.zeros((1, 1, 3), np.uint8)]
    found = read_images(images)
    assert found.shape == (9,) and found.dtype == object
    assert found[0] == found[1] == found[2] == content
    pixels, problems = (a.numpy() for a in decoded(found, HEIGHT, WIDTH))
    assert problems.tolist() == [b""] * 9
    for row in range(1, 5):
        assert np.array_equal(pixels[row], pixels[0])
    in_gray = reference(encoded(photograph().convert("L"), "PNG"))
    assert np.abs(pixels[5] - in_gray).max() < 1.01 and np.array_equal(pixels[5], pixels[6])
    assert np.abs(pixels[7] - reference(encoded(transparent(), "PNG"))).max() < 1.01


def test_images_of_pillow_in_any_mode():
    """Their arrays hold indices of a palette, bits, or colors that are no red, green and blue."""
    for mode in ("1", "P", "CMYK", "YCbCr", "HSV"):
        image = photograph().convert(mode)
        pixels, problems = (a.numpy() for a in decoded(read_images([image]), HEIGHT, WIDTH))
        assert problems.tolist() == [b""]
        expected = reference(encoded(image.convert("RGB"), "PNG"))
        assert np.abs(pixels[0] - expected).max() < 1.01
    for mode in ("LA", "PA"):
        image = transparent().convert(mode)
        pixels = decoded(read_images([image]), HEIGHT, WIDTH)[0].numpy()
        assert np.abs(pixels[0] - reference(encoded(image.convert("RGBA"), "PNG"))).max() < 1.01


@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_an_image_of_pillow_is_as_upright_as_its_file(tmp_path: Path, orientation: int):
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "turned.jpg"
    photograph().save(path, quality=100, exif=exif)
    with Image.open(path) as opened:
        pixels = decoded(read_images([path, opened]), HEIGHT, WIDTH)[0].numpy()
    assert np.abs(pixels[0] - pixels[1]).mean() < 2.0  # of two decoders of JPEG


def test_a_color_that_is_transparent(tmp_path: Path):
    image = photograph()
    image.putpixel((0, 0), (1, 2, 3))
    image.info["transparency"] = (1, 2, 3)
    found = read_images([image])[0]
    assert tf.io.decode_png(found).numpy()[0, 0].tolist()[-1] == 0


def test_an_array_stays_as_it_is():
    pixels = np.asarray(photograph())[np.newaxis].repeat(3, 0)
    assert read_images(pixels) is pixels
    assert np.array_equal(read_images(tf.constant(pixels)), pixels)
    found = read_images(pixels[..., :1])
    assert found.dtype == object and found.shape == (3,)


def test_no_images():
    assert read_images([]).shape == (0,)
    assert read_images(np.zeros((0, 5, 5, 3), np.uint8)).shape == (0,)
    assert read_images(iter([b"a", b"b"])).tolist() == [b"a", b"b"]
    assert read_images(tf.constant([b"a\0", b""])).tolist() == [b"a\0", b""]


@pytest.mark.parametrize("single", ["a.png", b"bytes", Path("a.png"), 5, None])
def test_one_image_alone(single):
    with pytest.raises(TypeError, match="`images` must be several images, as a list"):
        read_images(single)


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (None, TypeError, "`images`, row 1: must be a file's name, its bytes, or pixels"),
        ({"a": 1}, TypeError, "Received: {'a': 1}"),
        ([[1], [1, 2]], TypeError, "Received: [[1], [1, 2]]"),
        (np.zeros((4, 5, 3)), ValueError, "uint8, in 0..255. Received: dtype=float64"),
        (np.zeros((4, 5, 2), np.uint8), ValueError, "Received: shape=(4, 5, 2)"),
        (np.zeros((4, 0, 3), np.uint8), ValueError, "Received: shape=(4, 0, 3)"),
        (np.zeros(4, np.uint8), ValueError, "Received: shape=(4,)"),
        ("no/a.jpg", FileNotFoundError, "row 1: the image must be a file that exists. Received: "),
        ("https://a.org/b.jpg", FileNotFoundError, "'https://a.org/b.jpg'. Download it first."),
        (".", OSError, "row 1: the image must be a readable file. Received: '.'"),
        ("a\0b", OSError, "the image must be a readable file"),
    ],
)
def test_errors_name_the_row(image, error: type[Exception], message: str):
    with pytest.raises(error) as caught:
        read_images([Image.new("RGB", (2, 2)), image])
    assert message in str(caught.value)


def test_one_array_of_pixels_alone():
    for shape in ((5, 5, 3), (5, 5), (2, 2, 5, 5, 3)):
        with pytest.raises(ValueError, match=r"as pixels a uint8 array \(B, h, w, 3\)"):
            read_images(np.zeros(shape, np.uint8))
