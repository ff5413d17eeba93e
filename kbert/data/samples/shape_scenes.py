"""Scenes of one or two shapes, drawn at random: what is in a picture, before it is drawn or said.

Everything comes from `random.Random.random`, of which Python promises that a seed gives the same
numbers on every machine and in every version; NumPy's generators do not.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

KINDS = ("circle", "square", "triangle", "star")
COLORS = {
    "red": (215, 45, 40),
    "green": (45, 150, 65),
    "blue": (40, 80, 210),
    "yellow": (240, 210, 50),
    "purple": (140, 60, 170),
    "orange": (240, 135, 30),
}
BACKGROUNDS = {"white": (245, 245, 245), "gray": (150, 150, 150), "black": (25, 25, 25)}
# Radii in 64ths of the picture's side, with what a shape may differ from them.
SIZES = {"small": 6, "large": 12}
_RADIUS_SPREAD = 1
# Columns and rows of the centers of a shape that is alone, and of two beside each other.
_THIRDS = (15, 32, 49)
_PAIR = (16, 48)
_PLACE_SPREAD = 2
_MIDDLE = 1
_BRIGHTNESS_SPREAD = 12

T = TypeVar("T")


@dataclass(frozen=True)
class Shape:
    """A shape: its words, and its center and radius in 64ths of the picture's side."""

    kind: str
    color: str
    size: str
    x: int
    y: int
    radius: int


@dataclass(frozen=True)
class Scene:
    """A background with one shape, in a cell of a grid of 3 x 3, or two beside each other.

    `cell` is the (column, row) of the one shape, each 0 to 2. `vertical` says of two whether the
    first is above the second, and not to its left. `brightness` is added to all colors.
    """

    shapes: tuple[Shape, ...]
    background: str
    brightness: int
    cell: tuple[int, int] = (_MIDDLE, _MIDDLE)
    vertical: bool = False


def choice(generator: random.Random, items: Sequence[T]) -> T:
    """Returns one of some items, each equally likely."""
    return items[int(generator.random() * len(items))]


def random_scene(generator: random.Random) -> Scene:
    """Draws a scene: one shape or two, which differ in kind or color."""
    background = choice(generator, tuple(BACKGROUNDS))
    brightness = _spread(generator, _BRIGHTNESS_SPREAD)
    if generator.random() < 0.5:
        cell = (choice(generator, range(3)), choice(generator, range(3)))
        shape = _random_shape(generator, _THIRDS[cell[0]], _THIRDS[cell[1]])
        return Scene((shape,), background, brightness, cell)
    vertical = generator.random() < 0.5
    middle = _THIRDS[_MIDDLE]
    places = [(middle, at) if vertical else (at, middle) for at in _PAIR]
    first, second = (_random_shape(generator, x, y) for x, y in places)
    while (first.kind, first.color) == (second.kind, second.color):
        second = _random_shape(generator, *places[1])
    return Scene((first, second), background, brightness, vertical=vertical)


def _random_shape(generator: random.Random, x: int, y: int) -> Shape:
    size = choice(generator, tuple(SIZES))
    return Shape(
        kind=choice(generator, KINDS),
        color=choice(generator, tuple(COLORS)),
        size=size,
        x=x + _spread(generator, _PLACE_SPREAD),
        y=y + _spread(generator, _PLACE_SPREAD),
        radius=SIZES[size] + _spread(generator, _RADIUS_SPREAD),
    )


def _spread(generator: random.Random, most: int) -> int:
    return choice(generator, range(-most, most + 1))
