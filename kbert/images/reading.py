"""Images as Python holds them (names of files, their bytes, arrays of pixels) -> one array."""

import importlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

_KINDS = "a file's name, its bytes, or pixels, a uint8 array (h, w, 3), (h, w, 4) or (h, w)"
_CHANNELS = (1, 3, 4)
# Of Pillow: indices of a palette, bits, and colors that are no red, green and blue.
_OTHER_MODES = ("1", "P", "PA", "LA", "La", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")


def read_images(images: Any) -> np.ndarray:
    """Reads images in any form that Python holds them in, as `decoded` takes them.

    Args:
        images: some images (B,), each the name of a file (str or Path), its bytes, or its pixels,
            a uint8 array (h, w, 3), (h, w, 4) with alpha, or (h, w) in gray; the sizes may
            differ. Or one uint8 array (B, h, w, 3).

    Returns:
        Bytes of files as objects (B,), where pixels are PNG files; or the array as it is.

    Raises:
        ValueError, TypeError, FileNotFoundError, OSError: with the row and the file.
    """
    check_several(images)
    whole = images if isinstance(images, np.ndarray) or tf.is_tensor(images) else None
    if whole is not None:
        whole = np.asarray(whole)
        if whole.dtype == np.uint8 and whole.ndim == 4 and whole.shape[-1] == 3 and whole[:1].size:
            return whole
        if whole.dtype.kind in "uifb" and whole.ndim != 4:
            raise ValueError(
                "`images` must be several images, as pixels a uint8 array (B, h, w, 3). "
                f"Received: shape={whole.shape}, dtype={whole.dtype}"
            )
        images = whole
    files = [_file(image, f"`images`, row {row}") for row, image in enumerate(images)]
    found = np.empty(len(files), object)
    found[:] = files
    return found


def check_several(images: Any) -> None:
    """Raises a TypeError for a single image, or what is none."""
    if isinstance(images, (str, bytes, os.PathLike)) or not isinstance(images, Iterable):
        raise TypeError(
            f"`images` must be several images, as a list. Received: images={_cut(images)}"
        )


def _file(image: Any, where: str) -> bytes:
    if isinstance(image, bytes):
        return image
    if isinstance(image, (str, os.PathLike)):
        return _read(image, where)
    try:
        pixels = np.asarray(_in_colors(image))
    except ValueError as error:  # as for lists of several lengths
        raise TypeError(f"{where}: must be {_KINDS}. Received: {_cut(image)}") from error
    if pixels.dtype.kind not in "uifb":
        raise TypeError(f"{where}: must be {_KINDS}. Received: {_cut(image)}")
    if pixels.dtype != np.uint8:
        raise ValueError(
            f"{where}: pixels must be uint8, in 0..255. Received: dtype={pixels.dtype}"
        )
    if pixels.ndim == 2:
        pixels = pixels[..., np.newaxis]
    if pixels.ndim != 3 or pixels.shape[-1] not in _CHANNELS or not pixels.size:
        raise ValueError(f"{where}: must be {_KINDS}. Received: shape={np.shape(image)}")
    # Not compressed: the file is read again at once.
    return bytes(tf.io.encode_png(pixels, compression=0).numpy())


def _in_colors(image: Any) -> Any:
    """Turns an image of Pillow upright, and converts what is no gray and no colors."""
    if not hasattr(image, "getexif"):
        return image
    image = importlib.import_module("PIL.ImageOps").exif_transpose(image)
    has_alpha = image.mode in ("PA", "LA", "La", "RGBa") or "transparency" in image.info
    if not has_alpha and image.mode not in _OTHER_MODES:
        return image
    return image.convert("RGBA" if has_alpha else "RGB")


def _read(path: str | os.PathLike[str], where: str) -> bytes:
    name = os.fspath(path)
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        hint = " Download it first." if "://" in name else ""
        raise FileNotFoundError(
            f"{where}: the image must be a file that exists. Received: {name!r}.{hint}"
        ) from error
    except (OSError, ValueError) as error:  # a folder; a name with a zero byte
        raise OSError(
            f"{where}: the image must be a readable file. Received: {name!r} ({error})"
        ) from error


def _cut(value: Any, longest: int = 80) -> str:
    text = repr(value[:longest] if isinstance(value, bytes) else value)
    return text if len(text) <= longest else f"{text[:longest]}..."
