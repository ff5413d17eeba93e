"""The variables of a checkpoint in TensorFlow's own format, read by TensorFlow."""

from typing import Any

import numpy as np

from kbert.checkpoints.tensorflow_import import import_tensorflow


class TensorflowVariables:
    """The variables of one checkpoint, loaded one by one.

    Args:
        prefix: The checkpoint's prefix.
        purpose: What TensorFlow is needed for, for the error where it is not installed.

    Attributes:
        shapes: Key of a variable -> shape.

    Raises:
        ValueError: If the index is damaged or cut off.
        ImportError: If TensorFlow is not installed.
    """

    def __init__(self, prefix: str, purpose: str) -> None:
        tensorflow = import_tensorflow(purpose)
        self._prefix = prefix
        # TensorFlow turns some failures into exceptions of Python, by what their texts say.
        self._errors = (tensorflow.errors.OpError, LookupError, RuntimeError)
        try:
            self._reader = tensorflow.train.load_checkpoint(prefix)
            shapes = self._reader.get_variable_to_shape_map()
        except self._errors as error:
            raise self._damaged(error) from error
        self.shapes: dict[str, tuple[int, ...]] = {
            key: tuple(shape) for key, shape in shapes.items()
        }

    def bytes_of(self, key: str) -> bytes:
        """Returns the value of a variable that holds one string."""
        value: bytes = self._get(key)
        return value

    def load(self, key: str) -> np.ndarray:
        """Returns the array of a variable.

        Raises:
            ValueError: If the data is damaged or cut off.
        """
        return np.asarray(self._get(key))

    def _get(self, key: str) -> Any:
        """The value as TensorFlow gives it."""
        try:
            return self._reader.get_tensor(key)
        except self._errors as error:
            raise self._damaged(error) from error

    def _damaged(self, error: Exception) -> ValueError:
        """The error for files that TensorFlow cannot read."""
        return ValueError(
            f"`{self._prefix}` must be a whole checkpoint of TensorFlow; its files are damaged or "
            f"were cut off. Received: {error}"
        )
