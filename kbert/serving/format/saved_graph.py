"""The graph and the signatures of a SavedModel, read from its file without TensorFlow.

The objects have the names of TensorFlow's messages (`saved_model.proto`, `meta_graph.proto`,
`graph.proto`, `function.proto`, `node_def.proto`, `tensor_shape.proto`), so that the same functions
read either.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kbert.checkpoints.arrays.wire_format import read_fields
from kbert.serving.format.version_folders import SAVED_MODEL_FILE

SERVING_TAG = "serve"
# The loader runs it once; no client can call it.
INIT_OP = "__saved_model_init_op"
_COMPILED = b"_XlaMustCompile"


@dataclass(frozen=True)
class SavedTensor:
    """An input or output of a signature.

    Attributes:
        shape: Its dimensions, None for one that may vary; None if the rank is unknown.
    """

    shape: tuple[int | None, ...] | None


@dataclass(frozen=True)
class SavedSignature:
    """A function that a client can call by name.

    Attributes:
        inputs: Name of each argument -> its tensor.
        outputs: Name of each answer -> its tensor.
    """

    inputs: dict[str, SavedTensor]
    outputs: dict[str, SavedTensor]


@dataclass(frozen=True)
class SavedGraph:
    """The graph of a SavedModel for serving.

    Attributes:
        graph: Like a GraphDef: `node`, `library.function`; of attributes only `_XlaMustCompile`.
        signatures: Name -> signature, in alphabetical order, its tensors too.
        tensorflow_version: The TensorFlow that wrote it.
    """

    graph: Any
    signatures: dict[str, SavedSignature]
    tensorflow_version: str


def read_saved_graph(export_dir: str | os.PathLike[str]) -> SavedGraph:
    """Reads the graph for serving, without any weights.

    Args:
        export_dir: A version folder.

    Raises:
        FileNotFoundError: There is no saved_model.pb.
        ValueError: The file is not a SavedModel, or has no graph for serving.
    """
    file = saved_model_file(export_dir)
    tags = []
    try:
        for meta_graph in _all(file.read_bytes(), 2):
            about = _last(meta_graph, 1)
            tags.append([tag.decode() for tag in _all(about, 4)])
            if SERVING_TAG in tags[-1]:
                version = _last(about, 5).decode()
                return SavedGraph(_graph(_last(meta_graph, 2)), _signatures(meta_graph), version)
    except (ValueError, TypeError, AttributeError) as error:  # the bytes mean something else
        raise ValueError(f"`{file}` must be a SavedModel. Received: {error}") from error
    raise no_graph_for_serving(file, tags)


def saved_model_file(export_dir: str | os.PathLike[str]) -> Path:
    """Returns the path of a SavedModel's graph.

    Args:
        export_dir: A version folder.

    Raises:
        FileNotFoundError: There is no such file.
    """
    file = Path(export_dir) / SAVED_MODEL_FILE
    if not file.is_file():
        raise FileNotFoundError(f"`export_dir` must hold {SAVED_MODEL_FILE}. Received: {file}")
    return file


def no_graph_for_serving(file: Path, tags: list[list[str]]) -> ValueError:
    """Returns the error of a SavedModel without a graph for serving.

    Args:
        file: Its file.
        tags: The tags of each graph.
    """
    return ValueError(f"`{file}` must have a graph tagged {SERVING_TAG!r}. Received: tags={tags}")


def _all(message: bytes, number: int) -> list[Any]:
    return [field.value for field in read_fields(message) if field.number == number]


def _last(message: bytes, number: int, otherwise: Any = b"") -> Any:
    return next(reversed(_all(message, number)), otherwise)


def _graph(message: bytes) -> SimpleNamespace:
    functions = [_function(one) for one in _all(_last(message, 2), 1)]
    library = SimpleNamespace(function=functions)
    return SimpleNamespace(node=[_node(one) for one in _all(message, 1)], library=library)


def _function(message: bytes) -> SimpleNamespace:
    return SimpleNamespace(
        signature=SimpleNamespace(name=_last(_last(message, 1), 1).decode()),
        node_def=[_node(one) for one in _all(message, 3)],
        attr=_attributes(_all(message, 5)),
    )


def _node(message: bytes) -> SimpleNamespace:
    texts = {1: b"", 2: b"", 4: b""}
    attributes = []
    for field in read_fields(message):
        if field.number in texts:
            texts[field.number] = field.value
        elif field.number == 5:
            attributes.append(field.value)
    name, op, device = (text.decode() for text in texts.values())
    return SimpleNamespace(name=name, op=op, device=device, attr=_attributes(attributes))


def _attributes(entries: list[bytes]) -> dict[str, SimpleNamespace]:
    """Returns the one attribute that is checked, if present."""
    found = [entry for entry in entries if _COMPILED in entry and _last(entry, 1) == _COMPILED]
    return {
        _COMPILED.decode(): SimpleNamespace(b=bool(_last(_last(entry, 2), 5, 0)))
        for entry in found
    }


def _signatures(meta_graph: bytes) -> dict[str, SavedSignature]:
    found = _entries(_all(meta_graph, 5))
    return {
        name: SavedSignature(_tensors(_all(one, 1)), _tensors(_all(one, 2)))
        for name, one in found.items()
        if name != INIT_OP
    }


def _tensors(entries: list[bytes]) -> dict[str, SavedTensor]:
    return {name: SavedTensor(_shape(_last(one, 3))) for name, one in _entries(entries).items()}


def _entries(entries: list[bytes]) -> dict[str, bytes]:
    """Returns the entries of a map, in the order of their keys."""
    return dict(sorted((_last(entry, 1).decode(), _last(entry, 2)) for entry in entries))


def _shape(message: bytes) -> tuple[int | None, ...] | None:
    if _last(message, 3, 0):
        return None
    sizes = [_last(dimension, 1, 0) for dimension in _all(message, 2)]
    # Negative numbers are encoded as unsigned 64-bit ones.
    return tuple(None if size >= 1 << 63 else size for size in sizes)
