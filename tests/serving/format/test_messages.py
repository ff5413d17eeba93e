"""Declared messages, against TensorFlow's own."""

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, text_format, wrappers_pb2
from tensorflow.core.framework import (
    attr_value_pb2,
    function_pb2,
    graph_pb2,
    node_def_pb2,
    op_def_pb2,
    tensor_shape_pb2,
)
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from kbert.serving.format.messages import message_class

OFFICIAL = {
    "SavedModel": saved_model_pb2.SavedModel,
    "MetaGraphDef": meta_graph_pb2.MetaGraphDef,
    "MetaInfoDef": meta_graph_pb2.MetaGraphDef.MetaInfoDef,
    "SignatureDef": meta_graph_pb2.SignatureDef,
    "TensorInfo": meta_graph_pb2.TensorInfo,
    "GraphDef": graph_pb2.GraphDef,
    "FunctionDefLibrary": function_pb2.FunctionDefLibrary,
    "FunctionDef": function_pb2.FunctionDef,
    "OpDef": op_def_pb2.OpDef,
    "NodeDef": node_def_pb2.NodeDef,
    "AttrValue": attr_value_pb2.AttrValue,
    "TensorShapeProto": tensor_shape_pb2.TensorShapeProto,
    "Dim": tensor_shape_pb2.TensorShapeProto.Dim,
}


def fields_of(message: Any) -> dict[str, Any]:
    """Name of each field -> its declaration."""
    declared = descriptor_pb2.DescriptorProto()
    message.DESCRIPTOR.CopyToProto(declared)
    return {field.name: field for field in declared.field}


@pytest.mark.parametrize("name", OFFICIAL)
def test_fields_have_the_numbers_and_types_of_tensorflows_own(name: str):
    official = fields_of(OFFICIAL[name])
    for field, found in fields_of(message_class(name)).items():
        expected = official[field]
        assert (found.number, found.type) == (expected.number, expected.type), field
        assert found.label == expected.label, field


def test_the_logs_of_requests_are_those_of_tf_serving():
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    from tensorflow_serving.apis import model_pb2, predict_pb2, prediction_log_pb2

    log, spec = prediction_log_pb2.PredictionLog(), {"ModelSpec": model_pb2.ModelSpec}
    logs: dict[str, Any] = {"PredictionLog": type(log), "PredictLog": type(log.predict_log)}
    for name, one in {**logs, **spec, "PredictRequest": predict_pb2.PredictRequest}.items():
        official = {field: found.number for field, found in fields_of(one).items()}
        declared = {field: found.number for field, found in fields_of(message_class(name)).items()}
        assert declared.items() <= official.items()


def test_unknown_fields_are_skipped_and_wrapped_numbers_read():
    written = wrappers_pb2.Int64Value(value=7).SerializeToString()
    read = message_class("BatchingParameters").FromString(b"\x0a\x02" + written + b"\xf8\x01\x05")
    assert read.max_batch_size.value == 7 and not read.HasField("max_enqueued_batches")
    other = message_class("SignatureDef")()
    text_format.Parse('inputs { key: "a" value { tensor_shape { dim { size: -1 } } } }', other)
    assert other.inputs["a"].tensor_shape.dim[0].size == -1
