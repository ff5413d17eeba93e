import numpy as np
import pytest
import tensorflow as tf

from kbert.images.limits import pixels_unless, size_problem


@pytest.mark.parametrize(("height", "width"), [(1, 1), (10, 10), (100, 1), (3, 33)])
def test_sizes_within_the_limit(height: int, width: int):
    assert size_problem(height, width, 100) == b""


@pytest.mark.parametrize(
    ("height", "width"), [(11, 10), (101, 1), (1, 101), (2**31 - 1, 2**31 - 1), (2, 2**62)]
)
def test_larger_ones(height: int, width: int):
    expected = f"the image must have at most 100 pixels. Received: {height} x {width} pixels"
    assert size_problem(height, width, 100).numpy().decode() == expected


def test_long_sides():
    found = size_problem(65_536, 2, 1_000_000).numpy().decode()
    expected = "the image must have sides of at most 65535 pixels. Received: 65536 x 2 pixels"
    assert found == expected
    assert size_problem(2, 65_535, 1_000_000) == b""


def test_pixels_only_without_a_problem():
    pixels = tf.ones((2, 5, 3), tf.uint8)
    assert np.array_equal(pixels_unless(tf.constant(""), lambda: pixels), pixels)
    assert pixels_unless(tf.constant("large"), lambda: pixels).shape == (1, 1, 3)


@pytest.mark.parametrize(("height", "width"), [(0, 5), (5, 0), (0, 0), (-4, 5)])
def test_without_pixels(height: int, width: int):
    expected = f"the image must have pixels. Received: {height} x {width}"
    assert size_problem(height, width, 100).numpy().decode() == expected
