"""Images as numbers: pixels of one size, and the features of a frozen network, kept on disk.

Shapes: n images, H and W height and width, L places of a map, M width of its vectors.
"""

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from kbert.images.decoding import decoded
from kbert.images.reading import read_images
from kbert.models.weights import encoder_arrays
from kbert.storage.files import atomic_file

# Images that are decoded, and seen, at a time.
_AT_A_TIME = 32
_DTYPE = "float16"
_SHOWN = 5
_SECONDS_BETWEEN_LINES = 30.0


def image_features(
    model: Any, images: Sequence[Any], directory: str | os.PathLike[str] | None = None
) -> np.ndarray:
    """Returns the features of images by a captioner's network, float16 (n, L, M).

    Features of a trained network are far inside float16's range. The ones in a folder are valid for
    the same files, in the same order, and the same network; for others, others are made.

    Args:
        model: a `Captioner`.
        images: names of files, bytes or arrays of pixels, see `kbert.images.reading.read_images`.
        directory: the folder where the features are kept, which may be deleted at any time; None
            keeps them in memory.

    Raises:
        ValueError: an image cannot be decoded; the message names the first ones.
    """
    files = _Files(images)
    height, width = model.extractor.map_shape
    shape = (len(files), height * width, model.extractor.feature_dim)
    if directory is None:
        found = np.empty(shape, _DTYPE)
        for rows, features in _computed(model, files):
            found[rows] = features
        return found
    path = Path(directory, f"{_fingerprint(model, files)}.npy")
    if not path.is_file():
        # Written, not mapped: on a full disk a map would end the process without a message.
        with atomic_file(path) as partial, partial.open("wb") as file:
            header = {"descr": np.dtype(_DTYPE).str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            for _, features in _computed(model, files):
                file.write(features.tobytes())
    return np.load(path, mmap_mode="r")


def image_pixels(model: Any, images: Sequence[Any]) -> np.ndarray:
    """Returns images in the size of a captioner's network, uint8 (n, H, W, 3).

    Raises:
        ValueError: an image cannot be decoded; the message names the first ones.
    """
    files = _Files(images)
    found = np.empty((len(files), *model.extractor.image_size, 3), "uint8")
    for rows, pixels in _decoded(model, files):
        found[rows] = np.rint(pixels)
    return found


def check_images(model: Any, images: Sequence[Any]) -> None:
    """Raises the ValueError of `image_pixels` for images that cannot be decoded."""
    for _ in _decoded(model, _Files(images)):
        pass


class _Files:
    """Images, of which a few are in memory at a time."""

    def __init__(self, images: Sequence[Any]) -> None:
        self.images = images

    def __len__(self) -> int:
        return len(self.images)

    def read(self, rows: slice) -> np.ndarray:
        return read_images(self.images[rows])

    def name(self, row: int) -> str:
        one = self.images[row]
        return f"image {row}" + (f" ({os.fspath(one)})" if isinstance(one, str | Path) else "")


def _decoded(model: Any, files: _Files) -> Any:
    """Yields slices of rows, and their pixels float32 (k, H, W, 3)."""
    problems: list[str] = []
    for start in range(0, len(files), _AT_A_TIME):
        rows = slice(start, min(start + _AT_A_TIME, len(files)))
        height, width = model.extractor.image_size
        pixels, told = decoded(files.read(rows), height, width, model.image_fit)
        for row, problem in enumerate(told.numpy().tolist(), start):
            if problem:
                problems.append(f"{files.name(row)}: {problem.decode()}")
        yield rows, pixels.numpy()
    if problems:
        more = f"\nand {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise ValueError(
            f"`images` must be images. Received {len(problems)} of {len(files)} that are none:\n"
            + "\n".join(problems[:_SHOWN])
            + more
        )


def _computed(model: Any, files: _Files) -> Iterator[tuple[slice, np.ndarray]]:
    """Yields slices of rows, in their order, and their features float16 (k, L, M)."""
    extractor = model.extractor

    @tf.function(input_signature=[tf.TensorSpec((None, *extractor.image_size, 3))], autograph=False)
    def see(pixels: tf.Tensor) -> tf.Tensor:
        return tf.cast(extractor(pixels, training=False), tf.float16)

    tell = _bar(len(files))
    for rows, pixels in _decoded(model, files):
        found = see(pixels).numpy()
        if not np.isfinite(found).all():
            raise ValueError(
                "`network` must have features that half precision holds, up to 65,504. Received: "
                f"others, or NaN, in the rows {rows.start} to {rows.stop - 1} of the images"
            )
        yield rows, found
        tell(rows.stop)


def _bar(total: int) -> Callable[[int], None]:
    interval = 0.2 if sys.stderr.isatty() else _SECONDS_BETWEEN_LINES
    if total <= _AT_A_TIME:
        return lambda done: None
    bar = keras.utils.Progbar(total, interval=interval, unit_name="image")

    def tell(done: int) -> None:
        # Keras draws its bar on stdout, which is reserved for results.
        with contextlib.redirect_stdout(sys.stderr):
            bar.update(done)

    return tell


def _fingerprint(model: Any, files: _Files) -> str:
    """Returns a hash of all that features depend on."""
    config = {**model.extractor.get_config(), "image_fit": model.image_fit}
    text = json.dumps(_without_names(config), sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode())
    for array in encoder_arrays(model.extractor).values():
        digest.update(json.dumps([array.dtype.name, array.shape]).encode())
        digest.update(array.tobytes())
    for start in range(0, len(files), _AT_A_TIME):
        for image in files.read(slice(start, start + _AT_A_TIME)):
            # An array may be a view, which has no bytes of its own.
            content = image if isinstance(image, bytes) else np.asarray(image).tobytes()
            digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def _without_names(config: Any) -> Any:
    """Returns a configuration with numbers for the names of layers.

    Keras numbers those it makes: the same network has others when it is made a second time.
    """
    plain = json.loads(json.dumps(config, default=str))
    numbers: dict[str, str] = {}

    def walk(value: Any, change: Callable[[str, str], str]) -> Any:
        if isinstance(value, dict):
            return {
                key: change(key, one) if isinstance(one, str) else walk(one, change)
                for key, one in value.items()
            }
        if isinstance(value, list):
            return [change("", one) if isinstance(one, str) else walk(one, change) for one in value]
        return value

    def note(key: str, text: str) -> str:
        if key == "name":
            numbers.setdefault(text, f"#{len(numbers)}")
        return text

    walk(plain, note)
    return walk(plain, lambda key, text: numbers.get(text, text))


def as_files(images: np.ndarray) -> tf.Tensor:
    """Returns the result of `read_images` as encoded images, strings (B,)."""
    if images.dtype == np.uint8:  # pixels of one size
        images = read_images(list(images))
    return tf.constant(images.tolist(), tf.string, (len(images),))


def joined(arrays: list[np.ndarray]) -> np.ndarray:
    """Returns arrays of batches as one, padded where a second dimension differs."""
    longest = max((array.shape[1] for array in arrays if array.ndim > 1), default=0)
    padding = b"" if arrays[0].dtype == object else 0

    def widened(array: np.ndarray) -> np.ndarray:
        if array.ndim < 2 or array.shape[1] == longest:
            return array
        widths = [(0, 0), (0, longest - array.shape[1]), *[(0, 0)] * (array.ndim - 2)]
        return np.pad(array, widths, constant_values=padding)

    return np.concatenate([widened(array) for array in arrays])
