"""The object graph of a TF2 checkpoint: the variable of each attribute of an object.

A variable shared by two objects is stored once, under the key of one of them, so keys alone do not
identify a weight. The graph does.

Source: tensorflow, `core/protobuf/trackable_object_graph.proto`.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from kbert.checkpoints.arrays.wire_format import read_fields
from kbert.checkpoints.tensorflow.variables import TensorflowVariables

GRAPH_KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"


class _Node(NamedTuple):
    """One object: its attributes that are objects, and its variable's key."""

    children: dict[str, int]
    key: str | None


class ObjectGraph:
    """The objects of one checkpoint. Node 0 is the root.

    Args:
        prefix: The checkpoint's prefix.
        values: Whether `load` returns the values, or zeros without TensorFlow.

    Attributes:
        shapes: Key of a variable -> shape, without the graph itself.
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
        """Yields the keys of all variables below a node."""
        for below in self.nodes(node):
            key = self._own_key(below)
            if key is not None:
                yield key

    def load(self, key: str) -> np.ndarray:
        """Returns the array of a variable."""
        return self._variables.load(key)

    def _own_key(self, node: int) -> str | None:
        """Returns the key of a node that is a variable, else None."""
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
