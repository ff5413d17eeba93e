import numpy as np

from kbert.images.transparency import on_white
from tests.images.image_files import transparent


def test_blending_by_hand():
    pixels = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 100, 200, 51]]], np.uint8)
    # A fifth of the color and four fifths of white: 204, 224, 244.
    expected = [[[10, 20, 30], [255, 255, 255], [204, 224, 244]]]
    assert on_white(pixels).numpy().tolist() == expected


def test_an_opaque_image_is_as_it_was():
    pixels = np.random.default_rng(0).integers(0, 256, (5, 4, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    assert np.array_equal(on_white(pixels), pixels[..., :3])


def test_blending_is_rounded():
    pixels = np.asarray(transparent())
    alpha = pixels[..., 3:].astype(np.float64) / 255
    exact = pixels[..., :3] * alpha + 255 * (1 - alpha)
    assert np.abs(on_white(pixels).numpy() - exact).max() <= 0.5
