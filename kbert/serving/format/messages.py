"""Messages of TensorFlow and TF Serving, as classes of protobuf that need no TensorFlow.

Only the fields that kbert uses are declared; protobuf skips the others. Sources: tensorflow,
`saved_model.proto`, `meta_graph.proto`, `graph.proto`, `function.proto`, `node_def.proto`,
`attr_value.proto`, `tensor_shape.proto`; tensorflow/serving, `session_bundle_config.proto`,
`prediction_log.proto`, `predict.proto`, `model.proto`.
"""

import functools
import re
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, wrappers_pb2

_PACKAGE = "kbert"
_DECLARATIONS = """
message SavedModel { repeated MetaGraphDef meta_graphs = 2; }
message MetaGraphDef {
  MetaInfoDef meta_info_def = 1;
  GraphDef graph_def = 2;
  map<string, SignatureDef> signature_def = 5;
}
message MetaInfoDef { repeated string tags = 4; string tensorflow_version = 5; }
message GraphDef { repeated NodeDef node = 1; FunctionDefLibrary library = 2; }
message FunctionDefLibrary { repeated FunctionDef function = 1; }
message FunctionDef {
  OpDef signature = 1;
  repeated NodeDef node_def = 3;
  map<string, AttrValue> attr = 5;
}
message OpDef { string name = 1; }
message NodeDef {
  string name = 1;
  string op = 2;
  string device = 4;
  map<string, AttrValue> attr = 5;
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
  google.protobuf.StringValue thread_pool_name = 5;
  repeated int64 allowed_batch_sizes = 6;
  bool pad_variable_length_inputs = 7;
  google.protobuf.BoolValue enable_large_batch_splitting = 8;
  google.protobuf.Int64Value max_execution_batch_size = 9;
}

message PredictionLog { PredictLog predict_log = 6; }
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
