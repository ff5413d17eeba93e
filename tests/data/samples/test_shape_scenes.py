import random

from kbert.data.samples.shape_scenes import (
    BACKGROUNDS,
    COLORS,
    KINDS,
    SIZES,
    choice,
    random_scene,
)


def scenes(count: int = 2000, seed: int = 0):
    generator = random.Random(seed)
    return [random_scene(generator) for _ in range(count)]


def test_everything_occurs():
    found = scenes()
    shapes = [shape for scene in found for shape in scene.shapes]
    assert {shape.kind for shape in shapes} == set(KINDS)
    assert {shape.color for shape in shapes} == set(COLORS)
    assert {shape.size for shape in shapes} == set(SIZES)
    assert {scene.background for scene in found} == set(BACKGROUNDS)
    assert {scene.cell for scene in found} == {(x, y) for x in range(3) for y in range(3)}
    assert {len(scene.shapes) for scene in found} == {1, 2}
    assert len(set(found)) > 1900


def test_shapes_lie_within_the_picture_and_apart():
    for scene in scenes():
        for shape in scene.shapes:
            for at in (shape.x, shape.y):
                assert shape.radius <= at <= 64 - shape.radius
        if len(scene.shapes) == 2:
            first, second = scene.shapes
            gap = second.y - first.y if scene.vertical else second.x - first.x
            other = second.x - first.x if scene.vertical else second.y - first.y
            assert gap > first.radius + second.radius and abs(other) < 5
            assert (first.kind, first.color) != (second.kind, second.color)


def test_a_seed_draws_the_same():
    assert scenes(50) == scenes(60)[:50]
    assert scenes(50) != scenes(50, seed=1)


def test_choices_are_even():
    generator = random.Random(0)
    counts = [0, 0, 0]
    for _ in range(3000):
        counts[choice(generator, range(3))] += 1
    assert min(counts) > 900  # of 1000, with a standard deviation of 26
