"""Captions are true: what they say is found again in the scene, by rules written for the test."""

import random
import re

import pytest

from kbert.data.samples.shape_captions import captions_of, random_captions
from kbert.data.samples.shape_scenes import COLORS, KINDS, Scene, Shape, random_scene

ALONE = Scene((Shape("star", "orange", "large", 15, 49, 12),), "black", 0, cell=(0, 2))
PAIR = Scene(
    (Shape("circle", "red", "large", 32, 16, 12), Shape("square", "blue", "small", 32, 48, 6)),
    "gray",
    0,
    vertical=True,
)


def test_captions_of_one_shape():
    assert captions_of(ALONE) == [
        "a large orange star in the bottom left corner",
        "an orange star in the bottom left corner",
        "there is a large orange star in the bottom left corner",
        "a large orange star on a black background",
        "an orange star in the bottom left corner of a black picture",
        "a black picture with a large orange star in the bottom left corner",
        "the star in the bottom left corner is large and orange",
    ]


def test_captions_of_two_shapes():
    assert captions_of(PAIR) == [
        "a large red circle above a small blue square",
        "a small blue square below a large red circle",
        "a red circle above a blue square",
        "there is a blue square below a red circle",
        "a red circle at the top and a blue square at the bottom",
        "a large red circle and a small blue square on a gray background",
        "a gray picture with a red circle above a blue square",
    ]


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        ((1, 1), "in the middle"),
        ((1, 0), "at the top"),
        ((1, 2), "at the bottom"),
        ((0, 1), "on the left"),
        ((2, 1), "on the right"),
        ((2, 0), "in the top right corner"),
    ],
)
def test_places(cell: tuple[int, int], place: str):
    scene = Scene(ALONE.shapes, "black", 0, cell)
    assert captions_of(scene)[0] == f"a large orange star {place}"


def test_captions_are_true():
    generator = random.Random(3)
    word = re.compile(rf"({'|'.join(COLORS)}) ({'|'.join(KINDS)})")
    for _ in range(500):
        scene = random_scene(generator)
        every = captions_of(scene)
        assert len(set(every)) == 7
        if len(scene.shapes) == 1:
            continue
        first, second = scene.shapes
        for caption in every:
            named = word.findall(caption)
            by_name = {(shape.color, shape.kind): shape for shape in scene.shapes}
            one, other = (by_name[name] for name in named)
            if " above " in caption:
                assert one.y < other.y
            if " below " in caption:
                assert one.y > other.y
            if " left of " in caption:
                assert one.x < other.x
            if " right of " in caption:
                assert one.x > other.x


def test_drawn_captions_are_different():
    generator = random.Random(0)
    for _ in range(50):
        assert len(set(random_captions(PAIR, 3, generator))) == 3
    assert set(random_captions(PAIR, 7, generator)) == set(captions_of(PAIR))
