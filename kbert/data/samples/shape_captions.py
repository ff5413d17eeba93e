"""Captions of scenes of shapes, by a small grammar: each names colors, and most name places."""

import random

from kbert.data.samples.shape_scenes import Scene, Shape, choice

# Of columns and rows of a grid of 3 x 3.
_COLUMNS = ("left", "", "right")
_ROWS = ("top", "", "bottom")
_SIDES = {
    ("", ""): "in the middle",
    ("top", ""): "at the top",
    ("bottom", ""): "at the bottom",
    ("", "left"): "on the left",
    ("", "right"): "on the right",
}
# Of the first of two shapes, of the second, and of their places.
_BELOW = ("above", "below", "at the top", "at the bottom")
_BESIDE = ("to the left of", "to the right of", "on the left", "on the right")


def captions_of(scene: Scene) -> list[str]:
    """Returns all seven captions of a scene, all different and all true."""
    return _of_one(scene) if len(scene.shapes) == 1 else _of_two(scene)


def random_captions(scene: Scene, count: int, generator: random.Random) -> list[str]:
    """Draws `count` different captions of a scene, at most seven."""
    left = captions_of(scene)
    found = []
    for _ in range(count):
        found.append(choice(generator, left))
        left.remove(found[-1])
    return found


def _of_one(scene: Scene) -> list[str]:
    shape = scene.shapes[0]
    row, column = _ROWS[scene.cell[1]], _COLUMNS[scene.cell[0]]
    place = _SIDES.get((row, column), f"in the {row} {column} corner")
    full, short = f"a {shape.size} {_short(shape)}", _with_article(_short(shape))
    return [
        f"{full} {place}",
        f"{short} {place}",
        f"there is {full} {place}",
        f"{full} on a {scene.background} background",
        f"{short} {place} of a {scene.background} picture",
        f"a {scene.background} picture with {full} {place}",
        f"the {shape.kind} {place} is {shape.size} and {shape.color}",
    ]


def _of_two(scene: Scene) -> list[str]:
    before, behind, start, end = _BELOW if scene.vertical else _BESIDE
    full = [f"a {shape.size} {_short(shape)}" for shape in scene.shapes]
    short = [_with_article(_short(shape)) for shape in scene.shapes]
    return [
        f"{full[0]} {before} {full[1]}",
        f"{full[1]} {behind} {full[0]}",
        f"{short[0]} {before} {short[1]}",
        f"there is {short[1]} {behind} {short[0]}",
        f"{short[0]} {start} and {short[1]} {end}",
        f"{full[0]} and {full[1]} on a {scene.background} background",
        f"a {scene.background} picture with {short[0]} {before} {short[1]}",
    ]


def _short(shape: Shape) -> str:
    return f"{shape.color} {shape.kind}"


def _with_article(words: str) -> str:
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"
