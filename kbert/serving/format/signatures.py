"""The signatures of a SavedModel, which clients of TF Serving can call, read from its file."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from kbert.serving.format.saved_graph import client_signatures, serving_meta_graph, shape_of

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
        """Converts a batch (B, ...), an array or nested list, to an array of this tensor's dtype.

        Strings are str or bytes and become objects, since NumPy's own strings drop the NUL bytes at
        their ends. An error names the input as `name`.

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
    """Returns the signature of this name, after a check that it has these inputs.

    Raises:
        ValueError: There is no such signature, or it has other inputs.
    """
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
