"""Paths of a machine are found; texts that only look like one are left alone."""

import json
from pathlib import Path
from typing import Any

import pytest
from tensorflow.core.protobuf import meta_graph_pb2

from kbert.export_check.check import path_problems


def graph_with(*texts: str, op: str = "Const") -> Any:
    meta_graph = meta_graph_pb2.MetaGraphDef()
    node = meta_graph.graph_def.node.add(name="c", op=op)
    node.attr["value"].tensor.string_val.extend(text.encode() for text in texts)
    return meta_graph


@pytest.mark.parametrize(
    "text",
    ["/home/ann/vocab.txt", "/tmp/x", "C:\\models\\v.txt", "gs://bucket/v.txt", "file:///v.txt"],
)
def test_a_path_is_found(tmp_path: Path, text: str):
    (told,) = path_problems(graph_with("a", text), tmp_path)
    assert told == f"c (Const) holds the path {text!r}."


def test_the_path_of_something_here_is_found(tmp_path: Path):
    (told,) = path_problems(graph_with(f"{tmp_path}"), tmp_path)
    assert str(tmp_path) in told


@pytest.mark.parametrize(
    "text", ["/", "/m/01g317", "a/b", "and/or", "//", "/ tmp", "http://x.org/a"]
)
def test_other_texts_are_left_alone(tmp_path: Path, text: str):
    assert list(path_problems(graph_with(text), tmp_path)) == []


def test_functions_and_attributes_are_read(tmp_path: Path):
    meta_graph = meta_graph_pb2.MetaGraphDef()
    function = meta_graph.graph_def.library.function.add()
    function.signature.name = "f"
    function.node_def.add(name="n", op="ReadFile").attr["file"].s = b"/home/ann/x"
    function.node_def.add(name="m", op="NoOp").attr["_note"].s = b"/home/ann/y"
    assert list(path_problems(meta_graph, tmp_path)) == [
        "f: n (ReadFile) holds the path '/home/ann/x'."
    ]


def test_assets_lie_in_their_folder(tmp_path: Path):
    meta_graph = meta_graph_pb2.MetaGraphDef()
    for name in ("here.txt", "gone.txt", "/home/ann/v.txt", "../v.txt"):
        meta_graph.asset_file_def.add(filename=name)
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "here.txt").write_text("x")
    assert list(path_problems(meta_graph, tmp_path)) == [
        "The asset 'gone.txt' is missing in assets/.",
        "The asset '/home/ann/v.txt' must lie in assets/, not elsewhere.",
        "The asset '../v.txt' must lie in assets/, not elsewhere.",
    ]


def test_the_card_and_the_metadata_are_read(tmp_path: Path):
    extra = tmp_path / "assets.extra"
    extra.mkdir()
    metadata = {"a": [{"b": "/home/ann/run"}], "labels": ["/m/1"]}
    (extra / "kbert.json").write_text(json.dumps(metadata))
    (extra / "README.md").write_text("see /tmp/run/data.tsv, and `/models/x`, http://a.org/tmp/b")
    assert list(path_problems(meta_graph_pb2.MetaGraphDef(), tmp_path)) == [
        "assets.extra/kbert.json holds the path '/home/ann/run'.",
        "assets.extra/README.md holds the path '/tmp/run/data.tsv'.",
    ]
