"""Encoded images for tests, written by Pillow, and what they must look like, by Pillow too."""

import io
import struct
import zlib
from typing import Any

import numpy as np
from PIL import Image, ImageOps

from kbert.images.decoding import decoded

# One size for all tests: a graph is traced once a size.
HEIGHT, WIDTH = 24, 32


def photograph(height: int = 60, width: int = 80) -> Image.Image:
    """A smooth image of many colors."""
    noise = np.random.default_rng(0).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)


def transparent(height: int = 60, width: int = 80) -> Image.Image:
    """The same with an alpha that grows from left to right."""
    alpha = np.linspace(0, 255, width).astype(np.uint8)[np.newaxis].repeat(height, 0)
    return Image.fromarray(np.dstack([np.asarray(photograph(height, width)), alpha]))


def few_colors(count: int) -> Image.Image:
    """The same in a palette."""
    return photograph().convert("P", palette=Image.Palette.ADAPTIVE, colors=count)


def encoded(image: Image.Image, format: str, **options: Any) -> bytes:
    """The bytes of a file."""
    stream = io.BytesIO()
    image.save(stream, format, **options)
    return stream.getvalue()


def reference(content: bytes, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    """The pixels (height, width, 3) of the first frame, upright and on white."""
    image = Image.open(io.BytesIO(content))
    image.load()
    image = ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("RGBA", "LA") or "transparency" in image.info:
        white = Image.new("RGBA", image.size, (255, 255, 255, 255))
        white.alpha_composite(image.convert("RGBA"))
        image = white
    image = image.convert("RGB").resize((width, height), Image.Resampling.BILINEAR)
    return np.asarray(image).astype(np.float32)


def check_pixels(content: bytes, most: float = 1.0) -> None:
    """Holds a file's pixels to Pillow's, which rounds after each of the two passes of resizing."""
    pixels, problems = decoded([content], HEIGHT, WIDTH)
    assert problems.numpy().tolist() == [b""]
    assert np.abs(pixels[0].numpy() - reference(content)).max() < most


def problem_of(content: bytes) -> str:
    """The problem of a file, whose pixels must be zeros."""
    pixels, problems = decoded([content], HEIGHT, WIDTH)
    assert not np.any(pixels)
    return str(problems.numpy()[0].decode())


def png_chunk(name: bytes, data: bytes) -> bytes:
    """A chunk of a PNG file."""
    checksum = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", checksum)


def png_file(height: int, width: int, rows: bytes, extra: bytes = b"") -> bytes:
    """A PNG file of 8 bits, red, green and blue, from its compressed rows."""
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    data = png_chunk(b"IDAT", rows) + png_chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + header + extra + data
