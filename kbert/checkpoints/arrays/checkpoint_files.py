"""The files of a checkpoint's folder: their names, and safetensors.

Safetensors files, single or sharded, are tensors that are loaded one by one.

Format: https://github.com/huggingface/safetensors#format
"""

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from kbert.storage.json_files import read_json_object

# A system error in the library's error message.
_SYSTEM_ERROR = re.compile(r"os error (\d+)|code: (\d+)")
# Format -> the file by which a folder of it is known.
FORMAT_FILES = {
    "kbert": "kbert.json",
    "kbert_adapters": "kbert_adapters.json",
    "translation": "kbert_translation.json",
    "captioning": "kbert_captioning.json",
    "huggingface": "config.json",
}
# The key of a TF2 checkpoint that one of TF1 lacks.
GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
FLOATS = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}


class SafetensorsFiles:
    """The tensors of open safetensors files: their shapes, and their dtypes such as "BF16"."""

    def __init__(self, files: Mapping[Path, Any]) -> None:
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.dtypes: dict[str, str] = {}
        self._file_of: dict[str, Any] = {}
        for path, file in files.items():
            for name in file.keys():
                if name in self._file_of:
                    raise ValueError(
                        f"`{path}` must not hold a tensor of another shard. Received: {name}"
                    )
                piece = file.get_slice(name)
                self.shapes[name] = tuple(piece.get_shape())
                self.dtypes[name] = piece.get_dtype()
                self._file_of[name] = file

    def load(self, name: str) -> np.ndarray:
        """Returns the array of a tensor; raises a ValueError if its numbers are quantized."""
        if self.dtypes[name] not in FLOATS:
            raise ValueError(
                f"{name} must be a tensor of {', '.join(FLOATS.values())}: quantized weights "
                f"cannot be read. Received: dtype={self.dtypes[name]}"
            )
        array: np.ndarray = self._file_of[name].get_tensor(name)
        return array


@contextmanager
def open_safetensors(*paths: Path) -> Iterator[SafetensorsFiles]:
    """Yields the tensors of safetensors files together; raises a ValueError if one is damaged."""
    with ExitStack() as stack:
        files = {}
        for path in paths:
            try:
                files[path] = stack.enter_context(safe_open(path, framework="np"))
            except SafetensorError as error:
                raise ValueError(
                    f"`{path}` must be a whole safetensors file; it is damaged or was cut off, "
                    f"for example by a download that broke. Received: {os.path.getsize(path)} "
                    f"bytes, {error}"
                ) from error
        yield SafetensorsFiles(files)


def shards_of(index: Path) -> list[Path]:
    """Returns the shards that a `*.safetensors.index.json` names.

    Raises a ValueError if the file is no index, or names a file outside its folder, and a
    FileNotFoundError if shards are missing.
    """
    weight_map = read_json_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"`{index}` must have a `weight_map`. Received: weight_map={weight_map!r}")
    names = sorted({str(name) for name in weight_map.values()})
    for name in names:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ValueError(
                f"`{index}` must name safetensors files of its own folder. Received: {name!r}"
            )
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise FileNotFoundError(
            f"`{index}` needs all its shards beside it. Missing: {', '.join(missing)}"
        )
    return [index.parent / name for name in names]


def write_safetensors(path: Path, tensors: Mapping[str, np.ndarray], **metadata: str) -> None:
    """Writes tensors into one safetensors file, whose header gets `metadata`.

    Raises an OSError if the disk is full, or for another system error.
    """
    plain = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    path.touch()
    readers = path.stat().st_mode  # by the umask; the library allows only the owner
    try:
        save_file(plain, path, metadata=metadata)
    except SafetensorError as error:
        number = _SYSTEM_ERROR.search(str(error))
        if number is None:
            raise
        code = int(number[1] or number[2])
        raise OSError(code, os.strerror(code), str(path)) from error
    path.chmod(readers)


def dtype_of(arrays: Mapping[str, np.ndarray]) -> str:
    """Returns the dtype of most of the arrays' numbers, for example "float32"."""
    sizes: Counter[str] = Counter()
    for array in arrays.values():
        sizes[array.dtype.name] += array.size
    return sizes.most_common(1)[0][0]
