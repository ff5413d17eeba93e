"""Predict requests as records of TF Serving's log: serialized messages PredictionLog.

The messages are few and hold only texts and other messages, so they are written and read here field
by field, and an export needs no package besides TensorFlow. Sources: tensorflow/serving,
`apis/prediction_log.proto`, `predict.proto`, `model.proto`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import tensor_pb2

from kbert.checkpoints.arrays.wire_format import field_bytes, read_fields

# Numbers of the fields.
_PREDICT_LOG = 6  # of PredictionLog
_REQUEST = 1  # of PredictLog
_MODEL_SPEC, _INPUTS = 1, 2  # of PredictRequest
_NAME, _SIGNATURE = 1, 3  # of ModelSpec
_KEY, _VALUE = 1, 2  # of an entry of a map


@dataclass(frozen=True)
class PredictRequest:
    """A request to a model.

    Args:
        model: The model's name on the server.
        signature: The name of the signature.
        inputs: Name of each input -> its batch, (B, ...). Strings are bytes in an array of objects.
    """

    model: str
    signature: str
    inputs: Mapping[str, np.ndarray]

    @property
    def rows(self) -> int:
        """Returns B, the number of rows."""
        return len(next(iter(self.inputs.values()))) if self.inputs else 0


def encode_request(request: PredictRequest) -> bytes:
    """Serializes a request to a PredictionLog.

    Args:
        request: The request.
    """
    name = field_bytes(_NAME, request.model)
    spec = name + field_bytes(_SIGNATURE, request.signature)
    content = field_bytes(_MODEL_SPEC, spec)
    for key, array in sorted(request.inputs.items()):
        tensor = tf.make_tensor_proto(array).SerializeToString(deterministic=True)
        content += field_bytes(_INPUTS, field_bytes(_KEY, key) + field_bytes(_VALUE, tensor))
    return field_bytes(_PREDICT_LOG, field_bytes(_REQUEST, content))


def decode_request(record: bytes) -> PredictRequest:
    """Parses the request of a PredictionLog.

    Args:
        record: The serialized message.

    Raises:
        ValueError: It is not such a message, or one without a predict request.
    """
    try:
        request = _only(_only(record, _PREDICT_LOG), _REQUEST)
        spec = dict(_contents(_only(request, _MODEL_SPEC)))
        parts = [value for number, value in _contents(request) if number == _INPUTS]
        entries = [dict(_contents(part)) for part in parts]
        inputs = {entry[_KEY].decode("utf-8"): _array(entry[_VALUE]) for entry in entries}
        model, signature = (spec.get(key, b"").decode("utf-8") for key in (_NAME, _SIGNATURE))
    except (DecodeError, KeyError, IndexError, ValueError, TypeError, MemoryError) as error:
        raise ValueError(
            f"`record` must be a PredictionLog with a predict request. Received: {error!r}"
        ) from error
    return PredictRequest(model, signature, inputs)


def _array(content: bytes) -> np.ndarray:
    return np.asarray(tf.make_ndarray(tensor_pb2.TensorProto.FromString(content)))


def _contents(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields number and content of each text and message among the fields; skips others."""
    for field in read_fields(message):
        if isinstance(field.value, bytes):
            yield field.number, field.value


def _only(message: bytes, number: int) -> bytes:
    """Returns the field of a message; the last one counts."""
    return dict(_contents(message))[number]
