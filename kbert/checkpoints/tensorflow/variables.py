"""The variables of a checkpoint in TensorFlow's own format.

The index is read here; the values are read by TensorFlow.
"""

import glob
from pathlib import Path
from typing import Any

import numpy as np

from kbert.checkpoints.arrays.wire_format import read_varint
from kbert.checkpoints.tensorflow.bundle_index import read_index


def import_tensorflow(purpose: str) -> Any:
    """Imports TensorFlow.

    Args:
        purpose: The purpose that the error names.

    Returns:
        The module.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import tensorflow
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs TensorFlow: pip install tensorflow. Formats with safetensors files "
            "do not need it."
        ) from error
    return tensorflow


class TensorflowVariables:
    """The variables of one checkpoint, loaded one by one.

    Args:
        prefix: The checkpoint's prefix.
        purpose: The purpose that the error names if TensorFlow is not installed.
        values: Whether `load` returns the values; otherwise zeros of the same shape and dtype, for
            which TensorFlow is not imported.

    Attributes:
        shapes: Key of a variable -> shape.

    Raises:
        ValueError: If the index is damaged or truncated.
    """

    def __init__(self, prefix: str, purpose: str, values: bool = True) -> None:
        self._prefix = prefix
        self._purpose = purpose
        self._values = values
        self._reader: Any = None
        try:
            self._index = read_index(prefix)
        except (ValueError, OSError) as error:
            raise self._damaged(error) from error
        self.shapes = {key: entry.shape for key, entry in self._index.items()}

    def string(self, key: str) -> bytes:
        """Returns the value of a variable that holds one string.

        Raises:
            ValueError: If the data is damaged or truncated.
        """
        entry = self._index[key]
        prefix = Path(self._prefix)
        try:
            name = f"{glob.escape(prefix.name)}.data-{entry.shard:05d}-of-*"
            path = next(prefix.parent.glob(name))
            with path.open("rb") as file:
                file.seek(entry.offset)
                content = file.read(entry.size)
            length, place = read_varint(content, 0)
        except (ValueError, OSError, StopIteration) as error:
            raise self._damaged(error) from error
        # Between the length and the string is the length's checksum, of four bytes.
        if place + 4 + length != len(content):
            raise self._damaged(ValueError(f"{key} is cut off"))
        return content[place + 4 :]

    def load(self, key: str) -> np.ndarray:
        """Returns the array of a variable.

        Raises:
            ValueError: If the data is damaged or truncated.
            ImportError: If TensorFlow is not installed.
        """
        entry = self._index[key]
        if not self._values and entry.dtype.startswith("float"):
            return np.zeros(entry.shape, entry.dtype)
        tensorflow = import_tensorflow(self._purpose)
        # TensorFlow turns some failures into Python exceptions, depending on their messages.
        try:
            if self._reader is None:
                self._reader = tensorflow.train.load_checkpoint(self._prefix)
            return np.asarray(self._reader.get_tensor(key))
        except (tensorflow.errors.OpError, LookupError, RuntimeError) as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ValueError:
        """Makes the error for files that cannot be read."""
        return ValueError(
            f"`{self._prefix}` must be a whole checkpoint of TensorFlow; its files are damaged or "
            f"were cut off. Received: {error}"
        )
