"""The signatures of a SavedModel, which clients can call, and its weights, read by TensorFlow."""

import hashlib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from kbert.data.tables.columns import without_surrogates
from kbert.serving.format.json_tensors import numbers_of
from kbert.serving.format.messages import client_signatures, serving_meta_graph, shape_of

SERVING_DEFAULT = "serving_default"
# The attribute of an export's module, a list, that holds its variables.
WEIGHTS = "weights"
# Errors that TensorFlow raises for damaged files.
_DAMAGE = (tf.errors.OpError, RuntimeError, ValueError, IndexError, TypeError)
# Smaller arrays may be equal by chance, such as new biases.
_LARGE_BYTES = 1 << 14


@dataclass(frozen=True)
class SignatureTensor:
    """One input or output of a signature; `tensor` is its name in the graph.

    A dimension that may vary is None, and so is the shape if the rank is unknown.
    """

    tensor: str
    dtype: tf.DType
    shape: tuple[int | None, ...] | None

    @property
    def holds_texts(self) -> bool:
        """True where it has one string a row."""
        return self.dtype == tf.string and self.shape is not None and len(self.shape) == 1

    def batch(self, name: str, value: Any) -> np.ndarray:
        """Converts a batch (B, ...), an array or nested list, to an array of this tensor's dtype.

        Strings are str or bytes and become objects, since NumPy's own strings drop the NUL bytes at
        their ends; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD. The ValueError for
        what is no text, numbers of another kind, or a batch of another rank, names the input.
        """
        array = self._array(name, value)
        if self.shape is None or array.ndim == len(self.shape):
            if array.dtype == object:
                _check_texts(name, array)
            return array
        if array.size == 0 and array.ndim < len(self.shape):
            # No rows, each of one element: a graph may need a first token or a first choice.
            return array.reshape(0, *[1] * (len(self.shape) - 1))
        raise ValueError(
            f"`inputs[{name!r}]` must have {len(self.shape)} dimension(s). "
            f"Received: shape={array.shape}"
        )

    def _array(self, name: str, value: Any) -> np.ndarray:
        if self.dtype == tf.string:
            found = np.array(value, object)
            found.reshape(-1)[:] = [
                without_surrogates(one, name, "replace") if isinstance(one, str) else one
                for one in found.ravel()
            ]
            return found
        try:
            return numbers_of(value, self.dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ValueError(
                f"`inputs[{name!r}]` must be rows of one length, of {self.dtype.name}. "
                f"Received: {error}"
            ) from error

    def as_json(self) -> dict[str, Any]:
        """Returns dtype and shape for kbert.json."""
        return {"dtype": self.dtype.name, "shape": None if self.shape is None else list(self.shape)}


def _check_texts(name: str, array: np.ndarray) -> None:
    for one in array.ravel():
        if not isinstance(one, str | bytes):
            raise ValueError(f"`inputs[{name!r}]` must hold str or bytes. Received: {one!r:.80}")


@dataclass(frozen=True)
class Signature:
    """A function that a client can call by name: its arguments and answers by name."""

    inputs: dict[str, SignatureTensor]
    outputs: dict[str, SignatureTensor]


def read_meta_graph(export_dir: str | os.PathLike[str]) -> Any:
    """Reads TensorFlow's MetaGraphDef for serving, see `serving_meta_graph`."""
    return serving_meta_graph(export_dir, saved_model_pb2.SavedModel)


def signatures_of(meta_graph: Any) -> dict[str, Signature]:
    """Returns the signatures of a MetaGraphDef, each with its tensors in alphabetical order."""
    return {
        name: Signature(_tensors(definition.inputs), _tensors(definition.outputs))
        for name, definition in client_signatures(meta_graph)
    }


def checked_call(
    signatures: Mapping[str, Signature], name: str, inputs: Collection[str]
) -> Signature:
    """Returns the signature of this name; ValueError without one, or if it has other inputs."""
    if name not in signatures:
        raise ValueError(
            f"`signature` must be one of {sorted(signatures)}. Received: signature={name!r}"
        )
    called = signatures[name]
    if set(inputs) != set(called.inputs):
        raise ValueError(
            f"`inputs` of the signature {name!r} must be {sorted(called.inputs)}. "
            f"Received: inputs={sorted(inputs)}"
        )
    return called


def _tensors(infos: Any) -> dict[str, SignatureTensor]:
    return {
        name: SignatureTensor(info.name, tf.dtypes.as_dtype(info.dtype), shape_of(info))
        for name, info in sorted(infos.items())
    }


@dataclass(frozen=True)
class Weights:
    """Numbers of an export's arrays, parameters and bytes; name of a dtype -> its parameters."""

    arrays: int
    parameters: int
    bytes: int
    dtypes: dict[str, int]


def weights_of(export_dir: str | os.PathLike[str]) -> Weights:
    """Counts the weights of a version folder without reading them; none is not an error."""
    dtypes: dict[str, int] = {}
    arrays = size = 0
    for _, shape, dtype in _arrays(_reader(export_dir)):
        count = int(np.prod(shape, dtype=np.int64))
        arrays += 1
        dtypes[dtype.name] = dtypes.get(dtype.name, 0) + count
        size += count * dtype.size
    return Weights(arrays, sum(dtypes.values()), size, dict(sorted(dtypes.items())))


def stored_twice(export_dir: str | os.PathLike[str]) -> list[tuple[str, ...]]:
    """Finds large weights that a version folder holds more than once: the names of all copies.

    Constant arrays are left out: they are newly initialized, and rightly equal.
    """
    reader = _reader(export_dir)
    found: dict[bytes, list[str]] = {}
    for name, shape, dtype in _arrays(reader):
        if int(np.prod(shape, dtype=np.int64)) * dtype.size < _LARGE_BYTES:
            continue
        try:
            array = reader.get_tensor(name)
        except _DAMAGE as error:
            raise ValueError(f"`{name}` must be readable. Received: {error}") from error
        if (array == array.flat[0]).all():
            continue
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes())
        digest.update(f"{dtype.name}{shape}".encode())
        found.setdefault(digest.digest(), []).append(name)
    return [tuple(names) for names in found.values() if len(names) > 1]


def _reader(export_dir: str | os.PathLike[str]) -> Any:
    prefix = Path(export_dir, "variables", "variables")
    if not prefix.with_name("variables.index").is_file():
        return None
    try:
        return tf.train.load_checkpoint(str(prefix))
    except _DAMAGE as error:
        raise ValueError(f"`{prefix}` must hold weights. Received: {error}") from error


def _arrays(reader: Any) -> Iterator[tuple[str, list[int], tf.DType]]:
    """Yields name, shape and dtype of all arrays; strings are names of objects, not weights."""
    if reader is None:
        return
    dtypes = reader.get_variable_to_dtype_map()
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):
        if dtypes[name] != tf.string:
            yield name, shape, dtypes[name]
