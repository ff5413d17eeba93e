"""Resizing beside Pillow, and beside the triangle filter written as a matrix in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

from kbert.images.resizing import check_size, resized
from tests.images.image_files import photograph


def triangle_matrix(given: int, wanted: int, scale: float, shift: float = 0.0) -> np.ndarray:
    """Weights (wanted, given) of the triangle filter: as wide as a pixel of the coarser grid."""
    matrix = np.zeros((wanted, given))
    width = max(1 / scale, 1.0)
    for row in range(wanted):
        center = (row + 0.5 - shift) / scale
        weights = np.maximum(0.0, 1 - np.abs(np.arange(given) + 0.5 - center) / width)
        matrix[row] = weights / weights.sum()
    return matrix


def in_numpy(pixels: np.ndarray, height: int, width: int) -> np.ndarray:
    rows = triangle_matrix(pixels.shape[0], height, height / pixels.shape[0])
    columns = triangle_matrix(pixels.shape[1], width, width / pixels.shape[1])
    return np.einsum("yh,hwc,xw->yxc", rows, pixels.astype(np.float64), columns)


SIZES = [(60, 80), (24, 32), (7, 50), (90, 120), (1, 1), (61, 20)]


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_squeezed_as_the_filter_says(height: int, width: int):
    pixels = np.asarray(photograph())
    found = resized(pixels[np.newaxis], tf.constant([height, width]), "squeeze")[0].numpy()
    assert found.shape == (height, width, 3)
    assert np.abs(found - in_numpy(pixels, height, width)).max() < 1e-3


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_squeezed_as_pillow_does(height: int, width: int):
    image = photograph()
    found = resized(np.asarray(image)[np.newaxis], tf.constant([height, width]), "squeeze")[0]
    expected = image.resize((width, height), Image.Resampling.BILINEAR)
    # Pillow rounds after each of two passes.
    assert np.abs(found.numpy() - np.asarray(expected).astype(float)).max() < 1.01


@pytest.mark.parametrize(
    ("height", "width", "box"),
    [
        (30, 30, (10, 0, 70, 60)),  # the sides are cut off: left, upper, right, lower
        (20, 40, (0, 10, 80, 50)),
        (60, 80, (0, 0, 80, 60)),
        (120, 120, (10, 0, 70, 60)),
    ],
)
def test_cropped_as_pillow_does(height: int, width: int, box: tuple[int, int, int, int]):
    image = photograph()
    found = resized(np.asarray(image)[np.newaxis], tf.constant([height, width]), "crop")[0]
    expected = image.crop(box).resize((width, height), Image.Resampling.BILINEAR)
    difference = np.abs(found.numpy() - np.asarray(expected).astype(float))
    # Pillow's filter ends at the box, ours sees what is beyond it.
    assert difference[2:-2, 2:-2].max() < 1.01 and difference.max() < 12


def test_the_image_may_end_within_its_last_pixels():
    # Three pixels wide, of which two and a half are the image: the last is cut in half.
    pixels = np.array([[[[0] * 3, [100] * 3, [200] * 3]]], np.uint8)
    found = resized(pixels, tf.constant([1, 5]), "squeeze", tf.constant([1.0, 2.5]))
    # Centers at 0.25, 0.75, 1.25, 1.75, 2.25 of a grid whose pixels have theirs at 0.5, 1.5, 2.5.
    assert found[0, 0, :, 0].numpy() == pytest.approx([0, 25, 75, 125, 175], abs=1e-3)


def test_a_batch_is_resized_row_by_row():
    pixels = np.random.default_rng(0).integers(0, 256, (3, 9, 7, 3), dtype=np.uint8)
    found = resized(pixels, tf.constant([4, 5]), "crop")
    for row in range(3):
        alone = resized(pixels[row : row + 1], tf.constant([4, 5]), "crop")
        assert np.array_equal(found[row : row + 1], alone)
    assert resized(pixels[:0], tf.constant([4, 5]), "crop").shape == (0, 4, 5, 3)


@pytest.mark.parametrize(
    ("height", "width", "fit", "message"),
    [
        (0, 5, "crop", "`height` must be a whole number of pixels, at least 1. Received: height=0"),
        (5, 2.0, "crop", "`width` must be a whole number of pixels"),
        (True, 5, "crop", "`height` must be a whole number of pixels"),
        (5, 5, "pad", "`fit` must be one of ('squeeze', 'crop'). Received: fit='pad'"),
    ],
)
def test_wrong_sizes(height: int, width: int, fit: str, message: str):
    with pytest.raises(ValueError) as caught:
        check_size(height, width, fit)
    assert message in str(caught.value)
