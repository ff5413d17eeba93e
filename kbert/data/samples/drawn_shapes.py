"""Drawn shapes with captions: images and texts of our own, made in a moment and the same anywhere.

A picture shows one or two circles, squares, triangles or stars on a plain background. Its captions
name colors, sizes and places, so that they cannot be guessed from other captions: a model must look
at the image. Pixels are made by whole numbers alone, which no machine rounds in its own way.
"""

import csv
import io
import os
import random
import struct
import zlib
from pathlib import Path

import numpy as np

from kbert.data.samples.shape_captions import random_captions
from kbert.data.samples.shape_scenes import (
    BACKGROUNDS,
    COLORS,
    Scene,
    Shape,
    random_scene,
)
from kbert.storage.files import atomic_directory

CAPTIONS_FILE = "captions.csv"
IMAGES_FOLDER = "images"
_MOST_CAPTIONS = 7
_UNITS = 64  # of a picture's side, in which scenes are described
# Each pixel is the mean of 4 x 4 points.
_POINTS = 4
# Directions from the center to the corners, in 1000ths. A triangle is what lies within lines at
# half of its radius, opposite to its corners. A star of five points is what lies within four or
# five of five lines, at the cosine of 72 degrees of its radius, towards its points.
_TRIANGLE = ((0, 1000), (-866, -500), (866, -500))
_STAR = ((0, -1000), (951, -309), (588, 809), (-588, 809), (-951, -309))
_SQUARE = ((1000, 0), (-1000, 0), (0, 1000), (0, -1000))
# Kind -> directions, the distance of the lines in 1000ths of the radius, and how many count.
_LINES = {"triangle": (_TRIANGLE, 500, 3), "star": (_STAR, 309, 4), "square": (_SQUARE, 850, 4)}


def drawn_shapes(
    count: int = 1000, seed: int = 1, size: int = 64, captions_per_image: int = 3
) -> tuple[np.ndarray, list[list[str]]]:
    """Draws pictures of shapes, with captions.

    More pictures of a seed begin with the same ones.

    Args:
        count: number of pictures (N,).
        seed: other seeds draw other pictures: for training, validation and tests.
        size: height and width of the pictures in pixels, at least 16.
        captions_per_image: different captions of each picture, 1 to 7.

    Returns:
        (images, captions): uint8 (N, size, size, 3), and N lists of captions.
    """
    for name, value, least in (("count", count, 1), ("size", size, 16)):
        if value < least:
            raise ValueError(f"`{name}` must be at least {least}. Received: {name}={value}")
    if not 1 <= captions_per_image <= _MOST_CAPTIONS:
        raise ValueError(
            f"`captions_per_image` must be in 1..{_MOST_CAPTIONS}. Received: "
            f"captions_per_image={captions_per_image}"
        )
    generator = random.Random(seed)
    images = np.empty((count, size, size, 3), np.uint8)
    captions = []
    for image in images:
        scene = random_scene(generator)
        image[:] = drawn(scene, size)
        captions.append(random_captions(scene, captions_per_image, generator))
    return images, captions


def write_drawn_shapes(
    folder: str | os.PathLike[str],
    count: int = 1000,
    seed: int = 1,
    size: int = 64,
    captions_per_image: int = 3,
) -> Path:
    """Writes the pictures of `drawn_shapes` as PNG files, beside a table of their captions.

    The folder, which must not exist, gets `images/` and `captions.csv`, as `read_captions` reads
    them. Returns the path of the table. The other arguments are those of `drawn_shapes`.
    """
    images, captions = drawn_shapes(count, seed, size, captions_per_image)
    table = io.StringIO(newline="")
    rows = csv.writer(table, lineterminator="\n")
    rows.writerow(["image", "caption"])
    with atomic_directory(folder) as partial:
        (partial / IMAGES_FOLDER).mkdir()
        for number, (pixels, texts) in enumerate(zip(images, captions)):
            name = f"{seed}-{number:05d}.png"
            (partial / IMAGES_FOLDER / name).write_bytes(_png(pixels))
            rows.writerows([name, text] for text in texts)
        (partial / CAPTIONS_FILE).write_text(table.getvalue(), encoding="utf-8")
    return Path(folder) / CAPTIONS_FILE


def drawn(scene: Scene, size: int) -> np.ndarray:
    """Draws a scene: uint8 (size, size, 3)."""
    image = np.empty((size, size, 3), np.int64)
    image[:] = np.array(BACKGROUNDS[scene.background]) + scene.brightness
    for shape in scene.shapes:
        cover = _cover(shape, size)[..., np.newaxis]
        color = np.array(COLORS[shape.color]) + scene.brightness
        points = _POINTS**2
        image = (image * (points - cover) + color * cover + points // 2) // points
    return np.clip(image, 0, 255).astype(np.uint8)


def _cover(shape: Shape, size: int) -> np.ndarray:
    """Returns how many points of each pixel a shape covers, int64 (size, size), 0 to 16."""
    # In whole numbers: twice the places of points, times the units.
    scale = 2 * size * _POINTS
    reach, radius = shape.radius, shape.radius * scale
    columns, rows = (
        slice(max(0, (at - reach) * size // _UNITS), (at + reach) * size // _UNITS + 1)
        for at in (shape.x, shape.y)
    )
    numbers = np.arange(size * _POINTS, dtype=np.int64).reshape(size, _POINTS)
    places = (2 * numbers + 1) * _UNITS
    x = places[columns].reshape(-1) - shape.x * scale
    y = (places[rows].reshape(-1) - shape.y * scale)[:, np.newaxis]
    if shape.kind == "circle":
        inside = x * x + y * y <= radius * radius
    else:
        directions, distance, enough = _LINES[shape.kind]
        within = [x * across + y * down <= radius * distance for across, down in directions]
        inside = np.sum(within, axis=0) >= enough
    blocks = inside.reshape(len(y) // _POINTS, _POINTS, len(x) // _POINTS, _POINTS)
    cover = np.zeros((size, size), np.int64)
    cover[rows, columns] = blocks.sum(axis=(1, 3))
    return cover


def _png(pixels: np.ndarray) -> bytes:
    """Returns a PNG file of pixels, uint8 (h, w, 3); by the PNG specification, section 5."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checksum = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + checksum

    height, width = pixels.shape[:2]
    lines = np.zeros((height, 1 + 3 * width), np.uint8)  # each begins with its filter: none
    lines[:, 1:] = pixels.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines.tobytes()))
        + chunk(b"IEND", b"")
    )
