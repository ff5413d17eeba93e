"""Where an encoder is looked for, on graphs made by hand: no TensorFlow."""

from typing import Any

import pytest

from kbert.checkpoints.tensorflow.object_graph import EncoderKeys, find_encoder


class _Graph:
    """A graph given as nested dicts; a leaf is a variable's shape."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._nodes: list[Any] = []
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._children: list[dict[str, int]] = []
        self._keys: dict[int, str] = {}
        self._add(tree, "")

    def _add(self, value: Any, path: str) -> int:
        node = len(self._children)
        self._children.append({})
        if isinstance(value, dict):
            for name, child in value.items():
                self._children[node][name] = self._add(child, f"{path}/{name}".strip("/"))
        else:
            self.shapes[path] = value
            self._keys[node] = path
        return node

    def nodes(self, start: int = 0) -> list[int]:
        found = [start]
        for node in found:
            found.extend(self._children[node].values())
        return found

    def children(self, node: int) -> dict[str, int]:
        return self._children[node]

    def descend(self, node: int, path: str) -> int | None:
        for name in path.split("/"):
            if name not in self._children[node]:
                return None
            node = self._children[node][name]
        return node

    def key(self, node: int, path: str) -> str | None:
        found = self.descend(node, path)
        return None if found is None else self._keys.get(found)

    def variables_below(self, node: int) -> list[str]:
        return [self._keys[below] for below in self.nodes(node) if below in self._keys]


def _block(size: int) -> dict[str, Any]:
    return {"_attention_layer": {"_query_dense": {"bias": (size,)}}}


def test_an_encoder_by_its_attributes() -> None:
    encoder = {
        "_embedding_norm_layer": {"gamma": (4,)},
        "_transformer_layers": {"1": _block(1), "0": _block(0), "_self_name": {}},
    }
    graph: Any = _Graph({"step": (), "model": {"inner": encoder}})
    node, numbered = find_encoder(graph, "x")
    keys = EncoderKeys(graph, node, numbered)
    assert keys.num_layers == 2
    assert keys.find("_embedding_norm_layer/gamma") == "model/inner/_embedding_norm_layer/gamma"
    assert keys.find("_transformer_layers/2/x") is None
    assert len(keys.inside()) == 3


def test_an_encoder_by_the_numbers_of_its_layers() -> None:
    # Ten and eleven come after nine, not after one.
    layers: dict[str, Any] = {f"layer_with_weights-{i}": {"embeddings": (i,)} for i in range(3)}
    layers["layer_with_weights-3"] = {"gamma": (3,)}
    layers |= {f"layer_with_weights-{i}": _block(i) for i in (10, 4, 5, 6, 7, 8, 9, 11)}
    layers["layer_with_weights-12"] = {"kernel": (12,)}
    graph: Any = _Graph({"model": layers})
    node, numbered = find_encoder(graph, "x")
    keys = EncoderKeys(graph, node, numbered)
    assert keys.num_layers == 8
    assert keys.shape("_embedding_layer/embeddings") == (0,)
    assert keys.shape("_position_embedding_layer/embeddings") == (1,)
    assert keys.shape("_type_embedding_layer/embeddings") == (2,)
    assert keys.shape("_embedding_norm_layer/gamma") == (3,)
    assert keys.shape("_transformer_layers/0/_attention_layer/_query_dense/bias") == (4,)
    assert keys.shape("_transformer_layers/7/_attention_layer/_query_dense/bias") == (11,)
    assert keys.shape("_pooler_layer/kernel") == (12,)
    assert keys.find("_transformer_layers/8/_attention_layer/_query_dense/bias") is None
    with pytest.raises(ValueError, match="must have _pooler_layer/bias"):
        keys.shape("_pooler_layer/bias")


def test_no_encoder() -> None:
    graph: Any = _Graph({"model": {"kernel": (2,)}})
    with pytest.raises(ValueError, match="`a` must hold a BertEncoder.*model/kernel"):
        find_encoder(graph, "`a`")
