"""The signatures of a SavedModel, which clients of TF Serving can call, read from its file."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from kbert.serving.format.saved_graph import (
    INIT_OP,
    SERVING_TAG,
    no_graph_for_serving,
    saved_model_file,
)

SERVING_DEFAULT = "serving_default"


@dataclass(frozen=True)
class SignatureTensor:
    """One input or output of a signature.

    Args:
        tensor: Its name in the graph, such as "serving_default_text:0".
        dtype: Its dtype.
        shape: Its dimensions, None for one that may vary; None if the rank is unknown.
    """

    tensor: str
    dtype: tf.DType
    shape: tuple[int | None, ...] | None

    def batch(self, name: str, value: Any) -> np.ndarray:
        """Converts a batch for this tensor to an array of its dtype.

        Args:
            name: The name of the input, for the error.
            value: An array or nested list (B, ...); strings are str or bytes and become objects,
                since NumPy's own strings drop the NUL bytes at their ends.

        Raises:
            ValueError: The batch has another rank.
        """
        array = np.asarray(value, object if self.dtype == tf.string else self.dtype.as_numpy_dtype)
        if self.shape is None or array.ndim == len(self.shape):
            return array
        if array.size == 0 and array.ndim < len(self.shape):
            # No rows, each of one element: a graph may need a first token or a first choice.
            return array.reshape(0, *[1] * (len(self.shape) - 1))
        raise ValueError(
            f"`inputs[{name!r}]` must have {len(self.shape)} dimension(s). "
            f"Received: shape={array.shape}"
        )

    def as_json(self) -> dict[str, Any]:
        """Returns dtype and shape for kbert.json."""
        return {"dtype": self.dtype.name, "shape": None if self.shape is None else list(self.shape)}


@dataclass(frozen=True)
class Signature:
    """A function that a client can call by name.

    Args:
        inputs: Name of each argument -> its tensor.
        outputs: Name of each answer -> its tensor.
    """

    inputs: dict[str, SignatureTensor]
    outputs: dict[str, SignatureTensor]


def read_meta_graph(export_dir: str | os.PathLike[str]) -> Any:
    """Reads the MetaGraphDef for serving, without loading any weights.

    Args:
        export_dir: A version folder.

    Raises:
        FileNotFoundError: There is no saved_model.pb.
        ValueError: The file is not a SavedModel, or has no graph for serving.
    """
    file = saved_model_file(export_dir)
    saved_model = saved_model_pb2.SavedModel()
    try:
        saved_model.ParseFromString(file.read_bytes())
    except DecodeError as error:
        raise ValueError(f"`{file}` must be a SavedModel. Received: {error}") from error
    for meta_graph in saved_model.meta_graphs:
        if SERVING_TAG in meta_graph.meta_info_def.tags:
            return meta_graph
    tags = [list(meta_graph.meta_info_def.tags) for meta_graph in saved_model.meta_graphs]
    raise no_graph_for_serving(file, tags)


def signatures_of(meta_graph: Any) -> dict[str, Signature]:
    """Returns the signatures of a MetaGraphDef, each with its tensors in alphabetical order."""
    return {
        name: Signature(_tensors(definition.inputs), _tensors(definition.outputs))
        for name, definition in sorted(meta_graph.signature_def.items())
        if name != INIT_OP
    }


def _tensors(infos: Any) -> dict[str, SignatureTensor]:
    return {name: _tensor(info) for name, info in sorted(infos.items())}


def _tensor(info: Any) -> SignatureTensor:
    shape = None
    if not info.tensor_shape.unknown_rank:
        shape = tuple(None if dim.size < 0 else dim.size for dim in info.tensor_shape.dim)
    return SignatureTensor(info.name, tf.dtypes.as_dtype(info.dtype), shape)
