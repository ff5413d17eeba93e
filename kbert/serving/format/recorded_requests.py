"""Requests that an export comes with: to warm a server up, and with answers to compare.

tf_serving_warmup_requests, each record a message PredictionLog, is what a server runs when it loads
the export: a process's work at its first request (memory, kernels, threads) is then done before any
client waits. A record that fails makes the loading fail. kbert writes and runs requests to predict
alone; TF Serving also knows other kinds, such as those to classify. Source: tensorflow/serving,
`g3doc/saved_model_warmup.md` and `saved_model_warmup_util.cc`.

golden_answers.json holds requests with the answers of the model in Python, in the columnar format
of TF Serving's REST API, for `kbert check`, or to be posted to a server and compared.
"""

import json
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.framework import tensor_pb2

from kbert.serving.format.json_tensors import from_json, to_json
from kbert.serving.format.messages import message_class
from kbert.serving.format.signatures import Signature

logger = logging.getLogger(__name__)
WARMUP_FILE = Path("assets.extra", "tf_serving_warmup_requests")
# A server refuses an export with more.
MAX_RECORDS = 1000
GOLDEN_FILE = Path("assets.extra", "golden_answers.json")
_SHOWN = 80
_PREDICT = "predict_log"
# Errors that are raised for bytes that are no request.
_DAMAGE = (DecodeError, IndexError, ValueError, TypeError, OverflowError, MemoryError)
# How far a number may be off, due to other processors and other orders of summation. In int8 a
# number that lies between two codes may become either.
TOLERANCES = {"float32": 1e-4, "bfloat16": 3e-2, "float16": 1e-2, "int8": 3e-2}


@dataclass(frozen=True)
class PredictRequest:
    """A request: input -> its batch, (B, ...), whose strings are bytes in an array of objects."""

    model: str
    signature: str
    inputs: Mapping[str, np.ndarray]

    @property
    def rows(self) -> int:
        """Returns B, the number of rows."""
        return len(next(iter(self.inputs.values()))) if self.inputs else 0


class OtherRecord(ValueError):
    """The error of a PredictionLog with a request of another kind than predict."""


def encode_request(request: PredictRequest) -> bytes:
    """Serializes a request to a PredictionLog."""
    log = message_class("PredictionLog")()
    asked = log.predict_log.request
    asked.model_spec.name, asked.model_spec.signature_name = request.model, request.signature
    for name, batch in request.inputs.items():
        asked.inputs[name] = tf.make_tensor_proto(batch).SerializeToString(deterministic=True)
    return bytes(log.SerializeToString(deterministic=True))


def decode_request(record: bytes) -> PredictRequest:
    """Parses the request of a PredictionLog; ValueError if it does not hold one.

    The error is an `OtherRecord` if it holds one of another kind.
    """
    try:
        log = message_class("PredictionLog").FromString(record)
        if others := [field.name for field, _ in log.ListFields() if field.name != _PREDICT]:
            raise OtherRecord(
                f"`record` must be a PredictionLog with a predict request. Received: {others[0]}"
            )
        request = log.predict_log.request
        if not request.HasField("model_spec"):
            raise DecodeError("no predict request")
        tensors = {k: tensor_pb2.TensorProto.FromString(v) for k, v in request.inputs.items()}
        inputs = {name: np.asarray(tf.make_ndarray(tensor)) for name, tensor in tensors.items()}
    except OtherRecord:
        raise
    except _DAMAGE as error:
        raise ValueError(
            f"`record` must be a PredictionLog with a predict request. Received: {error!r}"
        ) from error
    return PredictRequest(request.model_spec.name, request.model_spec.signature_name, inputs)


def write_warmup(export_dir: str | os.PathLike[str], requests: Iterable[PredictRequest]) -> int:
    """Writes the requests of a version folder, at most 1,000, and returns their number."""
    records = [encode_request(request) for request in requests]
    if len(records) > MAX_RECORDS:
        raise ValueError(
            f"`requests` must be at most {MAX_RECORDS}: a server loads no more. "
            f"Received: {len(records)}"
        )
    file = Path(export_dir) / WARMUP_FILE
    file.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(file)) as writer:
        for record in records:
            writer.write(record)
    return len(records)


def read_warmup(
    export_dir: str | os.PathLike[str], skip_others: bool = False
) -> list[PredictRequest] | None:
    """Reads the requests of a version folder, in order; None without a file.

    With `skip_others` records of other kinds are left out, with a warning; else they are an error.
    """
    file = Path(export_dir) / WARMUP_FILE
    if not file.is_file():
        return None
    try:
        records = list(tf.data.TFRecordDataset(str(file)).as_numpy_iterator())
    except tf.errors.DataLossError as error:
        raise ValueError(f"`{file}` must be a TFRecord file. Received: {error.message}") from error
    requests, others = [], 0
    for record in records:
        try:
            requests.append(decode_request(record))
        except OtherRecord:
            if not skip_others:
                raise
            others += 1
    if others:
        logger.warning(
            "%s: %d of %d records are not run: they are no predict requests.",
            file,
            others,
            len(records),
        )
    return requests


@dataclass(frozen=True)
class GoldenAnswer:
    """A request to a signature, its answer, and the absolute and relative tolerance of floats."""

    signature: str
    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray]
    tolerance: float


def write_golden(export_dir: str | os.PathLike[str], answers: Sequence[GoldenAnswer]) -> None:
    """Writes the answers of a version folder."""
    content = [
        {
            "request": {"signature_name": one.signature, "inputs": _columns(one.inputs)},
            "response": {"outputs": _columns(one.outputs)},
            "tolerance": one.tolerance,
        }
        for one in answers
    ]
    file = Path(export_dir) / GOLDEN_FILE
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_golden(
    export_dir: str | os.PathLike[str], signatures: Mapping[str, Signature]
) -> list[GoldenAnswer] | None:
    """Reads the answers of a version folder, in its signatures' dtypes; None without a file."""
    file = Path(export_dir) / GOLDEN_FILE
    if not file.is_file():
        return None
    try:
        return [_answer(one, signatures) for one in json.loads(file.read_text(encoding="utf-8"))]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"`{file}` must hold requests to the signatures and their answers. Received: {error!r}"
        ) from error


def differences(
    found: Mapping[str, np.ndarray], expected: Mapping[str, np.ndarray], tolerance: float
) -> list[str]:
    """Describes the differences between two answers, one sentence an output.

    The tolerance of floats is absolute and relative; texts, integers and bools must be equal.
    """
    told = []
    if set(found) != set(expected):
        told.append(f"the outputs are {sorted(found)} instead of {sorted(expected)}")
    for name in sorted(set(found) & set(expected)):
        one, other = np.asarray(found[name]), np.asarray(expected[name])
        if one.shape != other.shape:
            told.append(f"{name!r} has the shape {one.shape} instead of {other.shape}")
        elif one.dtype.kind in "OSbiu" or other.dtype.kind in "OSbiu":
            wrong = np.argwhere(one != other)
            if len(wrong):
                at = tuple(wrong[0].tolist())
                told.append(f"{name!r} is {_shown(one[at])} instead of {_shown(other[at])} at {at}")
        else:
            one, other = one.astype(np.float32), other.astype(np.float32)
            if not np.allclose(one, other, rtol=tolerance, atol=tolerance, equal_nan=True):
                off = float(np.max(np.abs(np.nan_to_num(one) - np.nan_to_num(other))))
                told.append(f"{name!r} is off by up to {off:.3g}, more than {tolerance:g}")
    return told


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)[:_SHOWN]


def _columns(batches: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {name: to_json(np.asarray(batch)) for name, batch in sorted(batches.items())}


def _answer(content: Any, signatures: Mapping[str, Signature]) -> GoldenAnswer:
    request, response = content["request"], content["response"]
    name = request["signature_name"]
    called = signatures[name]
    inputs = {k: from_json(v, called.inputs[k].dtype) for k, v in request["inputs"].items()}
    outputs = {k: from_json(v, called.outputs[k].dtype) for k, v in response["outputs"].items()}
    return GoldenAnswer(name, inputs, outputs, float(content["tolerance"]))
