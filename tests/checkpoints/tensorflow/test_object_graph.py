"""The object graph of a small checkpoint, written by TensorFlow."""

from pathlib import Path

import pytest

from kbert.checkpoints.arrays.checkpoint_files import GRAPH_KEY
from kbert.checkpoints.tensorflow.object_graph import ObjectGraph

tf = pytest.importorskip("tensorflow")


def test_paths_lead_to_variables_shared_ones_too(tmp_path: Path) -> None:
    shared = tf.Variable([1.0, 2.0])
    inner = tf.train.Checkpoint(weight=shared, other=tf.Variable(3.0))
    prefix = tf.train.Checkpoint(near=shared, inner=inner).save(str(tmp_path / "ckpt"))
    graph = ObjectGraph(prefix)
    assert GRAPH_KEY not in graph.shapes
    assert graph.children(0).keys() == {"near", "inner", "save_counter"}
    key = graph.key(0, "inner/weight")
    # One variable, one key, whichever way leads to it.
    assert key is not None and key == graph.key(0, "near")
    assert graph.shapes[key] == (2,)
    assert graph.load(key).tolist() == [1.0, 2.0]
    inner_node = graph.descend(0, "inner")
    assert inner_node is not None
    assert sorted(graph.variables_below(inner_node)) == sorted(
        [key, "inner/other/.ATTRIBUTES/VARIABLE_VALUE"]
    )
    assert graph.key(0, "inner") is None
    assert graph.key(0, "inner/no/such") is None
    assert len(list(graph.nodes())) == len(set(graph.nodes())) == 5
