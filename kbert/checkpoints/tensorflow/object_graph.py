"""The object graph of a TF2 checkpoint: the variable of each attribute, and the BertEncoder in it.

A variable shared by two objects is stored once, under the key of one of them, so keys alone do not
identify a weight. The graph does.

Source: tensorflow, `core/protobuf/trackable_object_graph.proto`; tf-models-official,
`nlp/modeling/networks/bert_encoder.py`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kbert.checkpoints.arrays.checkpoint_files import GRAPH_KEY
from kbert.checkpoints.arrays.wire_format import read_fields
from kbert.checkpoints.tensorflow.variables import TensorflowVariables


class _Node(NamedTuple):
    """One object: its attributes that are objects, and its variable's key."""

    children: dict[str, int]
    key: str | None


class ObjectGraph:
    """The objects of one checkpoint. Node 0 is the root.

    Without `values`, `load` returns zeros and needs no TensorFlow. `shapes` maps the key of a
    variable to its shape; the graph itself is not among them.
    """

    def __init__(self, prefix: str, values: bool = True) -> None:
        self._variables = TensorflowVariables(prefix, "Reading a TensorFlow 2 checkpoint", values)
        graph = self._variables.string(GRAPH_KEY)
        self._nodes = [_node(field.value) for field in read_fields(graph) if field.number == 1]
        self.shapes = dict(self._variables.shapes)
        del self.shapes[GRAPH_KEY]

    def children(self, node: int) -> dict[str, int]:
        """Returns the attributes of an object that are objects themselves: name -> node."""
        return self._nodes[node].children

    def nodes(self, start: int = 0) -> Iterator[int]:
        """Yields a node and all below it, breadth first."""
        seen = {start}
        queue = [start]
        for node in queue:
            yield node
            for child in self.children(node).values():
                if child not in seen:
                    seen.add(child)
                    queue.append(child)

    def descend(self, node: int, path: str) -> int | None:
        """Returns the node at the end of a slash-separated path, or None."""
        for name in path.split("/"):
            children = self.children(node)
            if name not in children:
                return None
            node = children[name]
        return node

    def key(self, node: int, path: str) -> str | None:
        """Returns the key of the variable at the end of a path, or None if there is none."""
        found = self.descend(node, path)
        return None if found is None else self._own_key(found)

    def variables_below(self, node: int) -> Iterator[str]:
        """Returns the keys of all variables below a node."""
        return filter(None, map(self._own_key, self.nodes(node)))

    def load(self, key: str) -> np.ndarray:
        """Returns the array of a variable."""
        return self._variables.load(key)

    def _own_key(self, node: int) -> str | None:
        key = self._nodes[node].key
        return key if key in self.shapes else None


def _node(message: bytes) -> _Node:
    """Parses a `TrackableObject`: its children, and the key of its value if it is a variable."""
    children: dict[str, int] = {}
    key = None
    for field in read_fields(message):
        if field.number not in (1, 2):
            continue
        parts = {part.number: part.value for part in read_fields(field.value)}
        if field.number == 1:
            children[parts[2].decode()] = parts.get(1, 0)
        elif parts.get(1) == b"VARIABLE_VALUE":
            key = parts[3].decode()
    return _Node(children, key)


# A functional encoder (BertEncoder, and the published files) numbers its layers with weights:
# three embeddings, their norm, the blocks, the pooler.
_NUMBERED = "layer_with_weights-"
_BEFORE_BLOCKS = ("_embedding_layer", "_position_embedding_layer", "_type_embedding_layer",
                  "_embedding_norm_layer")


class EncoderKeys:
    """The variables of one encoder by their paths from it, under the names of BertEncoderV2.

    `encoder` is its node, and `numbered` holds the numbers of its blocks, in order.
    """

    def __init__(self, graph: ObjectGraph, encoder: int, numbered: list[int]) -> None:
        self.graph = graph
        self.encoder = encoder
        self.num_layers = len(numbered)
        self._numbers = numbered

    def find(self, path: str) -> str | None:
        """Returns the key of the variable at a path, or None."""
        return self.graph.key(self.encoder, self._in_file(path))

    def shape(self, path: str) -> tuple[int, ...]:
        """Returns the shape of a required variable."""
        key = self.find(path)
        if key is None:
            raise ValueError(f"The encoder of a Model Garden checkpoint must have {path}.")
        return self.graph.shapes[key]

    def inside(self) -> set[str]:
        """Returns the keys of all variables below the encoder."""
        return set(self.graph.variables_below(self.encoder))

    def _in_file(self, path: str) -> str:
        if self.graph.descend(self.encoder, "_embedding_norm_layer") is not None:
            return path
        first, _, rest = path.partition("/")
        if first == "_transformer_layers":
            index, _, rest = rest.partition("/")
            if int(index) >= self.num_layers:
                return path
            return f"{_NUMBERED}{self._numbers[int(index)]}/{rest}"
        if first == "_pooler_layer":
            return f"{_NUMBERED}{self._numbers[-1] + 1}/{rest}"
        return f"{_NUMBERED}{_BEFORE_BLOCKS.index(first)}/{rest}"


def find_encoder(graph: ObjectGraph, source: str) -> tuple[int, list[int]]:
    """Finds the encoder nearest to the root: its node, and the numbers of its blocks in order.

    Raises a ValueError that names the `source` of the graph if there is none.
    """
    for node in graph.nodes():
        children = graph.children(node)
        if "_embedding_norm_layer" in children and "_transformer_layers" in children:
            blocks = graph.children(children["_transformer_layers"])
            return node, sorted(int(name) for name in blocks if name.isdigit())
        numbered = [
            int(name.removeprefix(_NUMBERED))
            for name, child in children.items()
            if name.startswith(_NUMBERED) and "_attention_layer" in graph.children(child)
        ]
        if numbered:
            return node, sorted(numbered)
    keys = ", ".join(sorted(graph.shapes)[:8])
    raise ValueError(
        f"{source} must hold a BertEncoder of Model Garden (tf-models-official). Received an "
        f"object graph with: {keys}, ..."
    )
