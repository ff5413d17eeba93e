"""Drawn shapes beside polygons in floating point, and what a picture shows beside its captions."""

import hashlib
import math
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from kbert.data.captions.captioned_images import read_captions
from kbert.data.samples import sample_path
from kbert.data.samples.drawn_shapes import drawn, drawn_shapes, write_drawn_shapes
from kbert.data.samples.shape_scenes import BACKGROUNDS, COLORS, KINDS, Scene, Shape


def corners(kind: str) -> list[tuple[float, float]]:
    """A polygon around the origin, of radius 1, y downwards."""

    def at(degrees: float, radius: float = 1.0) -> tuple[float, float]:
        angle = math.radians(degrees)
        return radius * math.sin(angle), -radius * math.cos(angle)

    if kind == "square":
        return [(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)]
    if kind == "triangle":
        return [at(0), at(120), at(240)]
    # The inner corners of a regular star: cos 72 / cos 36 of the radius.
    inner = math.cos(math.radians(72)) / math.cos(math.radians(36))
    return [at(36 * i, 1.0 if i % 2 == 0 else inner) for i in range(10)]


def is_inside(x: np.ndarray, y: np.ndarray, polygon: list[tuple[float, float]]) -> np.ndarray:
    """Whether points are inside, by how often a ray to the right crosses the sides."""
    found = np.zeros(x.shape, bool)
    for (x0, y0), (x1, y1) in zip(polygon, [*polygon[1:], polygon[0]]):
        if y0 != y1:
            crosses = (y0 > y) != (y1 > y)
            found ^= crosses & (x < (x1 - x0) * (y - y0) / (y1 - y0) + x0)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_beside_polygons(kind: str):
    scene = Scene((Shape(kind, "blue", "large", 30, 33, 13),), "white", 0)
    size = 96
    # The middles of 8 x 8 points a pixel, in radii.
    grid = (np.arange(8 * size) + 0.5) / (8 * size) * 64
    x, y = (grid - 30) / 13, ((grid - 33) / 13)[:, np.newaxis]
    x, y = np.broadcast_arrays(x, y)
    inside = x * x + y * y <= 1 if kind == "circle" else is_inside(x, y, corners(kind))
    cover = inside.reshape(size, 8, size, 8).mean(axis=(1, 3))[..., np.newaxis]
    expected = cover * COLORS["blue"] + (1 - cover) * BACKGROUNDS["white"]
    difference = np.abs(drawn(scene, size) - expected)
    # 4 x 4 points in ours: at the edges a few of them differ.
    assert difference.max() < 205 * 3 / 16 and difference.mean() < 0.3


def test_two_shapes_and_brightness():
    red = Shape("circle", "red", "small", 16, 32, 6)
    green = Shape("square", "green", "large", 48, 32, 12)
    image = drawn(Scene((red, green), "black", 12), 64)
    assert image.shape == (64, 64, 3) and image.dtype == np.uint8
    assert image[0, 0].tolist() == [37, 37, 37]
    assert image[32, 16].tolist() == [227, 57, 52] and image[32, 48].tolist() == [57, 162, 77]


def test_the_same_on_every_machine():
    """Kept from the first version, so that nobody's pictures change unnoticed."""
    images, captions = drawn_shapes(200)
    digest = hashlib.sha256(images.tobytes() + repr(captions).encode()).hexdigest()
    assert digest == "3c086cced7760a6cad1f6b11398c680d8a74c1898a8c9599669d24bb63d70624"
    assert images.shape == (200, 64, 64, 3) and {len(each) for each in captions} == {3}


def test_more_pictures_begin_with_the_same():
    images, captions = drawn_shapes(10)
    more, more_captions = drawn_shapes(12)
    assert np.array_equal(more[:10], images) and more_captions[:10] == captions
    assert not np.array_equal(drawn_shapes(10, seed=2)[0], images)


def test_colors_are_seen_where_captions_say():
    images, captions = drawn_shapes(300, size=32, captions_per_image=7)
    for image, texts in zip(images, captions):
        pair = next((text for text in texts if " at the top and " in text), None)
        if pair is None:
            continue
        top, bottom = pair.split(" at the top and ")
        for half, words in ((image[:16], top), (image[16:], bottom)):
            color = next(name for name in COLORS if name in words.split())
            distance = np.abs(half.astype(int) - COLORS[color]).max(axis=-1)
            assert distance.min() <= 12  # as much as the brightness differs


def test_files(tmp_path: Path):
    table = write_drawn_shapes(tmp_path / "shapes", 8, size=24, captions_per_image=2)
    examples = read_captions(table, table.parent / "images")
    images, captions = drawn_shapes(8, size=24, captions_per_image=2)
    assert examples.captions == captions and len(examples) == 8
    for path, pixels in zip(examples.paths, images):
        assert np.array_equal(Image.open(path), pixels)
    with pytest.raises(FileExistsError):
        write_drawn_shapes(tmp_path / "shapes", 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": 0}, "`count` must be at least 1. Received: count=0"),
        ({"size": 15}, "`size` must be at least 16. Received: size=15"),
        ({"captions_per_image": 8}, "`captions_per_image` must be in 1..7"),
    ],
)
def test_wrong_arguments(options: dict, message: str):
    with pytest.raises(ValueError) as caught:
        drawn_shapes(**options)
    assert message in str(caught.value)


def test_modules_are_no_samples():
    with pytest.raises(FileNotFoundError) as caught:
        sample_path("support/no.tsv")
    assert ".pyc" not in str(caught.value)
