import pytest

from kbert.images.limits import size_problem


@pytest.mark.parametrize(("height", "width"), [(1, 1), (10, 10), (100, 1), (3, 33)])
def test_sizes_within_the_limit(height: int, width: int):
    assert size_problem(height, width, 100) == b""


@pytest.mark.parametrize(
    ("height", "width"), [(11, 10), (101, 1), (1, 101), (2**31 - 1, 2**31 - 1), (2, 2**62)]
)
def test_larger_ones(height: int, width: int):
    expected = f"the image must have at most 100 pixels. Received: {height} x {width} pixels"
    assert size_problem(height, width, 100).numpy().decode() == expected


@pytest.mark.parametrize(("height", "width"), [(0, 5), (5, 0), (0, 0), (-4, 5)])
def test_without_pixels(height: int, width: int):
    expected = f"the image must have pixels. Received: {height} x {width}"
    assert size_problem(height, width, 100).numpy().decode() == expected
