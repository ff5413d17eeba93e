"""A SavedModel read without TensorFlow, beside what TensorFlow reads."""

from pathlib import Path

import pytest
import tensorflow as tf

from kbert.serving.format.messages import SavedTensor, read_saved_graph
from kbert.serving.format.servable import check_export, core_ops, nodes_of
from kbert.serving.format.signatures import read_meta_graph, signatures_of
from tests.serving.written_model import write_model


def test_a_model_written_by_hand(tmp_path: Path):
    found = read_saved_graph(write_model(tmp_path / "1"))
    assert found.tensorflow_version == "2.20.0"
    assert list(found.signatures) == ["serving_default"]
    assert found.signatures["serving_default"].inputs == {"text": SavedTensor((None, 3))}
    (where, node), (inside, other) = nodes_of(found.graph)
    assert (where, node.name, node.op, node.device) == ("", "call", "PartitionedCall", "")
    assert (inside, other.name, other.op) == ("f", "inside", "Identity")
    assert node.attr["_XlaMustCompile"].b is False and other.attr == {}
    assert check_export(tmp_path / "1").problems == ()


def test_problems_of_models_written_by_hand(tmp_path: Path):
    (problem,) = check_export(write_model(tmp_path / "1", op="Nobodys")).problems
    assert problem.startswith("The op Nobodys belongs neither to TensorFlow")
    (problem,) = check_export(write_model(tmp_path / "2", op="MatMul")).problems
    assert problem.startswith("f is pinned to /device:GPU:0")
    problems = check_export(write_model(tmp_path / "3", batch=8)).problems
    assert [problem.rpartition("shape ")[2] for problem in problems] == ["(8, 3)."] * 2


def test_an_export_is_read_as_tensorflow_reads_it(exported_path: Path):
    found, expected = read_saved_graph(exported_path), read_meta_graph(exported_path)
    assert found.tensorflow_version == expected.meta_info_def.tensorflow_version

    def listed(graph):
        return [(where, node.name, node.op, node.device) for where, node in nodes_of(graph)]

    assert listed(found.graph) == listed(expected.graph_def)
    signatures = signatures_of(expected)
    assert list(found.signatures) == list(signatures)
    for name, signature in signatures.items():
        for side in ("inputs", "outputs"):
            shapes = {key: tensor.shape for key, tensor in getattr(signature, side).items()}
            read = getattr(found.signatures[name], side)
            assert {key: tensor.shape for key, tensor in read.items()} == shapes


def test_the_ops_are_those_of_tensorflow():
    assert core_ops() == {name for name in dir(tf.raw_ops) if not name.startswith("_")}


def test_what_is_no_saved_model(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="`export_dir` must hold saved_model.pb"):
        read_saved_graph(tmp_path)
    file = tmp_path / "saved_model.pb"
    for content in (b"\xff" * 9, b"\x12\x03abc", b"\x10\x01"):
        file.write_bytes(content)
        with pytest.raises(ValueError, match="must be a SavedModel. Received"):
            read_saved_graph(tmp_path)
    file.write_bytes(b"")
    with pytest.raises(ValueError, match=r"must have a graph tagged 'serve'. Received: tags=\[\]"):
        read_saved_graph(tmp_path)
