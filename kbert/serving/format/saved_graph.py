"""The graph and the signatures of a SavedModel, read from its file without TensorFlow."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from kbert.serving.format.messages import message_class
from kbert.serving.format.version_folders import SAVED_MODEL_FILE

SERVING_TAG = "serve"
# The loader runs it once; no client can call it.
INIT_OP = "__saved_model_init_op"


@dataclass(frozen=True)
class SavedTensor:
    """An input or output of a signature: its shape, as in `shape_of`."""

    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class SavedSignature:
    """A function that a client can call by name, with its arguments and answers by name."""

    inputs: dict[str, SavedTensor]
    outputs: dict[str, SavedTensor]


@dataclass(frozen=True)
class SavedGraph:
    """The graph of a SavedModel for serving, and the TensorFlow that wrote it.

    It is like a GraphDef, of whose attributes only `b` is there; the signatures are in alphabetical
    order.
    """

    graph: Any
    signatures: dict[str, SavedSignature]
    tensorflow_version: str


def read_saved_graph(export_dir: str | os.PathLike[str]) -> SavedGraph:
    """Reads the graph for serving of a version folder; for the errors see `serving_meta_graph`."""
    found = serving_meta_graph(export_dir, message_class("SavedModel"))
    signatures = {
        name: SavedSignature(_tensors(one.inputs), _tensors(one.outputs))
        for name, one in client_signatures(found)
    }
    return SavedGraph(found.graph_def, signatures, found.meta_info_def.tensorflow_version)


def serving_meta_graph(export_dir: str | os.PathLike[str], message: Any) -> Any:
    """Reads the MetaGraphDef for serving of a version folder, without any weights.

    `message` is the class of the message SavedModel, TensorFlow's own or that of `messages`.

    Raises:
        FileNotFoundError: There is no saved_model.pb.
        ValueError: The file is not a SavedModel, or has no graph for serving.
    """
    file = Path(export_dir) / SAVED_MODEL_FILE
    if not file.is_file():
        raise FileNotFoundError(f"`export_dir` must hold {SAVED_MODEL_FILE}. Received: {file}")
    content = file.read_bytes()
    try:
        graphs = message.FromString(content).meta_graphs
        if content and not graphs:
            raise DecodeError("no graph")
    except DecodeError as error:
        raise ValueError(f"`{file}` must be a SavedModel. Received: {error}") from error
    for graph in graphs:
        if SERVING_TAG in graph.meta_info_def.tags:
            return graph
    tags = [list(graph.meta_info_def.tags) for graph in graphs]
    raise ValueError(f"`{file}` must have a graph tagged {SERVING_TAG!r}. Received: tags={tags}")


def client_signatures(meta_graph: Any) -> list[tuple[str, Any]]:
    """Returns name and SignatureDef of what clients can call, in alphabetical order."""
    return [pair for pair in sorted(meta_graph.signature_def.items()) if pair[0] != INIT_OP]


def shape_of(info: Any) -> tuple[int | None, ...] | None:
    """Returns the shape of a TensorInfo: None for free dimensions, and for an unknown rank."""
    if info.tensor_shape.unknown_rank:
        return None
    return tuple(None if dim.size < 0 else dim.size for dim in info.tensor_shape.dim)


def _tensors(infos: Any) -> dict[str, SavedTensor]:
    return {name: SavedTensor(shape_of(info)) for name, info in sorted(infos.items())}
