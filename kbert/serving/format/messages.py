"""Messages of TensorFlow and TF Serving, read and written without TensorFlow.

Only the fields that kbert uses are declared; protobuf skips the others. Sources: tensorflow,
`saved_model.proto`, `meta_graph.proto`, `graph.proto`, `function.proto`, `node_def.proto`,
`attr_value.proto`, `tensor_shape.proto`; tensorflow/serving, `session_bundle_config.proto`,
`prediction_log.proto`, `predict.proto`, `model.proto`.
"""

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2
from google.protobuf.message import DecodeError

from kbert.serving.format.version_folders import SAVED_MODEL_FILE

SERVING_TAG = "serve"
# The loader runs it once; no client can call it.
INIT_OP = "__saved_model_init_op"
_PACKAGE = "kbert"
_DECLARATIONS = """
message SavedModel { repeated MetaGraphDef meta_graphs = 2; }
message MetaGraphDef {
  MetaInfoDef meta_info_def = 1; GraphDef graph_def = 2;
  map<string, SignatureDef> signature_def = 5;
}
message MetaInfoDef { repeated string tags = 4; string tensorflow_version = 5; }
message GraphDef { repeated NodeDef node = 1; FunctionDefLibrary library = 2; }
message FunctionDefLibrary { repeated FunctionDef function = 1; }
message FunctionDef {
  OpDef signature = 1; repeated NodeDef node_def = 3; map<string, AttrValue> attr = 5;
}
message OpDef { string name = 1; }
message NodeDef {
  string name = 1; string op = 2; string device = 4; map<string, AttrValue> attr = 5;
}
message AttrValue { bool b = 5; }
message SignatureDef { map<string, TensorInfo> inputs = 1; map<string, TensorInfo> outputs = 2; }
message TensorInfo { TensorShapeProto tensor_shape = 3; }
message TensorShapeProto { repeated Dim dim = 2; bool unknown_rank = 3; }
message Dim { int64 size = 1; }

message BatchingParameters {
  google.protobuf.Int64Value max_batch_size = 1;
  google.protobuf.Int64Value batch_timeout_micros = 2;
  google.protobuf.Int64Value max_enqueued_batches = 3;
  google.protobuf.Int64Value num_batch_threads = 4;
  google.protobuf.StringValue thread_pool_name = 5; repeated int64 allowed_batch_sizes = 6;
  bool pad_variable_length_inputs = 7; google.protobuf.BoolValue enable_large_batch_splitting = 8;
  google.protobuf.Int64Value max_execution_batch_size = 9;
}

message PredictionLog {
  OtherLog classify_log = 2; OtherLog regress_log = 3; OtherLog multi_inference_log = 4;
  OtherLog session_run_log = 5; PredictLog predict_log = 6; OtherLog predict_streamed_log = 7;
}
message OtherLog { }
message PredictLog { PredictRequest request = 1; }
message PredictRequest { ModelSpec model_spec = 1; map<string, bytes> inputs = 2; }
message ModelSpec { string name = 1; string signature_name = 3; }
"""
_MESSAGE = re.compile(r"message (\w+) \{([^}]*)\}")
_FIELD = re.compile(r"(repeated )?(?:map<string, (\w+)>|([\w.]+)) (\w+) = (\d+);")
# Numbers of `FieldDescriptorProto.Type`; all other types are messages.
_TYPES = {"int64": 3, "bool": 8, "string": 9, "bytes": 12}
_MESSAGE_TYPE = 11


def message_class(name: str) -> Any:
    """Returns the class of a message, such as "SavedModel"; a tensor in it is bytes."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{_PACKAGE}.{name}"))


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    """Returns the descriptors in a pool of their own, apart from those of TensorFlow."""
    file = descriptor_pb2.FileDescriptorProto(
        name="kbert/messages.proto",
        package=_PACKAGE,
        syntax="proto3",
        dependency=[wrappers_pb2.DESCRIPTOR.name],
    )
    for name, body in _MESSAGE.findall(_DECLARATIONS):
        message = file.message_type.add(name=name)
        for repeated, in_map, kind, field, number in _FIELD.findall(body):
            if in_map:  # on the wire, a list of pairs
                pair = f"{field.title().replace('_', '')}Entry"
                entry = message.nested_type.add(name=pair)
                entry.options.map_entry = True
                _declare(entry, "key", 1, "string")
                _declare(entry, "value", 2, in_map)
                kind = f"{_PACKAGE}.{name}.{pair}"
            _declare(message, field, int(number), kind, bool(repeated or in_map))
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(wrappers_pb2.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return pool


def _declare(message: Any, name: str, number: int, kind: str, repeated: bool = False) -> None:
    field = message.field.add(name=name, number=number, type=_TYPES.get(kind, _MESSAGE_TYPE))
    field.label = field.LABEL_REPEATED if repeated else field.LABEL_OPTIONAL
    if kind not in _TYPES:
        field.type_name = f".{kind}" if "." in kind else f".{_PACKAGE}.{kind}"


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
    """The graph of a SavedModel for serving, its signatures, and the TensorFlow that wrote it."""

    graph: Any  # like a GraphDef, of whose attributes only `b` is there
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

    `message` is the class of the message SavedModel, TensorFlow's own or that of `message_class`.
    Raises FileNotFoundError without a saved_model.pb, and ValueError without a graph for serving.
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
