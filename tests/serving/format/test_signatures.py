"""Signatures read from the file."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from kbert.serving.format.signatures import SignatureTensor, read_meta_graph, signatures_of


def test_the_signatures_of_a_classifier(exported_path: Path):
    found = signatures_of(read_meta_graph(exported_path))
    assert list(found) == ["serving_default", "tokens"]
    text = found["serving_default"].inputs
    assert {name: (t.dtype, t.shape) for name, t in text.items()} == {"text": (tf.string, (None,))}
    assert {name: (t.dtype, t.shape) for name, t in found["tokens"].inputs.items()} == {
        "lengths": (tf.int32, (None,)),
        "segment_ids": (tf.int32, (None, None)),
        "token_ids": (tf.int32, (None, None)),
    }
    scores = {
        "label": (tf.string, (None,)),
        "labels": (tf.string, (None, 3)),
        "score": (tf.float32, (None,)),
        "scores": (tf.float32, (None, 3)),
    }
    outputs = {name: (t.dtype, t.shape) for name, t in found["tokens"].outputs.items()}
    assert outputs == scores
    outputs = {name: (t.dtype, t.shape) for name, t in found["serving_default"].outputs.items()}
    assert outputs == {**scores, "truncated": (tf.bool, (None,))}
    assert text["text"].as_json() == {"dtype": "string", "shape": [None]}


def test_other_files_are_refused(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="`export_dir` must hold saved_model.pb"):
        read_meta_graph(tmp_path)
    file = tmp_path / "saved_model.pb"
    file.write_bytes(b"\xff\xff\xff")
    with pytest.raises(ValueError, match="must be a SavedModel"):
        read_meta_graph(tmp_path)
    saved_model = saved_model_pb2.SavedModel()
    saved_model.meta_graphs.add().meta_info_def.tags.append("train")
    file.write_bytes(saved_model.SerializeToString())
    with pytest.raises(ValueError, match=r"tagged 'serve'. Received: tags=\[\['train'\]\]"):
        read_meta_graph(tmp_path)


def test_a_batch_keeps_its_bytes():
    tensor = SignatureTensor("text:0", tf.string, (None,))
    batch = tensor.batch("text", [b"a\0", "ä", b"\xff"])
    assert batch.dtype == object
    assert batch.tolist() == [b"a\0", "ä", b"\xff"]


def test_a_batch_of_no_rows_has_the_rank_of_the_tensor():
    assert SignatureTensor("t:0", tf.string, (None,)).batch("t", []).shape == (0,)
    ids = SignatureTensor("t:0", tf.int32, (None, None)).batch("t", [])
    assert (ids.shape, ids.dtype) == ((0, 1), np.int32)


def test_another_rank_is_told():
    tensor = SignatureTensor("text:0", tf.string, (None,))
    with pytest.raises(ValueError, match=r"`inputs\['text'\]` must have 1 dimension.*shape=\(\)"):
        tensor.batch("text", "one text")
    with pytest.raises(ValueError, match=r"must have 1 dimension\(s\). Received: shape=\(1, 2\)"):
        tensor.batch("text", [["a", "b"]])


def test_a_lone_surrogate_becomes_the_replacement():
    given = np.array(["a\ud83d", b"\xff"], object)
    tensor = SignatureTensor("text:0", tf.string, (None,))
    assert tensor.batch("text", given).tolist() == ["a\ufffd", b"\xff"]
    assert given[0] == "a\ud83d"  # what was given stays


@pytest.mark.parametrize(
    "value, received",
    [
        ([[101.9]], "101.9, which is no int32"),
        ([["7"]], '"7", which is no int32'),
        ([[1, 2], [3]], "lists of different lengths"),
        ([[True]], "elements of type bool"),
    ],
)
def test_numbers_of_another_kind_are_refused(value: Any, received: str):
    tensor = SignatureTensor("ids:0", tf.int32, (None, None))
    message = rf"`inputs\['ids'\]` must be rows of one length, of int32. Received: {received}"
    with pytest.raises(ValueError, match=message):
        tensor.batch("ids", value)
    assert tensor.batch("ids", np.array([[7]], "int64")).dtype == np.int32
