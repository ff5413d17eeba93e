"""Records of predict requests, against the official messages of tensorflow-serving-api."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.format.messages import message_class
from kbert.serving.format.recorded_requests import (
    OtherRecord,
    PredictRequest,
    decode_request,
    encode_request,
)

TEXTS = np.array(["größer".encode(), b"", b"\xff\0", b"x" * 300], object)
REQUEST = PredictRequest(
    "topics",
    "tokens",
    {"token_ids": np.array([[1, 2], [3, 2**31 - 1]], np.int32), "text": TEXTS[:2]},
)


@pytest.fixture(scope="module")
def logs() -> Any:
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    from tensorflow_serving.apis import prediction_log_pb2

    return prediction_log_pb2


def test_the_official_message_reads_a_record(logs: Any):
    log = logs.PredictionLog.FromString(encode_request(REQUEST))
    assert log.WhichOneof("log_type") == "predict_log"
    request = log.predict_log.request
    assert (request.model_spec.name, request.model_spec.signature_name) == ("topics", "tokens")
    assert sorted(request.inputs) == ["text", "token_ids"]
    numbers = tf.make_ndarray(request.inputs["token_ids"])
    assert numbers.dtype == np.int32 and numbers.tolist() == [[1, 2], [3, 2**31 - 1]]
    assert tf.make_ndarray(request.inputs["text"]).tolist() == TEXTS[:2].tolist()
    # Nothing was written that the message does not know.
    assert logs.PredictionLog.FromString(log.SerializeToString()) == log


def test_a_record_of_the_official_message_is_read(logs: Any):
    log = logs.PredictionLog()
    log.log_metadata.sampling_config.sampling_rate = 0.5  # a field of fixed size, read over
    request = log.predict_log.request
    request.model_spec.name, request.model_spec.signature_name = "m", "s"
    request.model_spec.version.value = 3
    request.output_filter.append("label")
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(TEXTS))
    request.inputs["scale"].CopyFrom(tf.make_tensor_proto([0.5, 1.0, 2.0, 4.0]))
    found = decode_request(log.SerializeToString())
    assert (found.model, found.signature, found.rows) == ("m", "s", 4)
    assert found.inputs["text"].tolist() == TEXTS.tolist()
    assert found.inputs["scale"].dtype == np.float32


@pytest.mark.parametrize(
    "kind",
    [
        "classify_log",
        "regress_log",
        "multi_inference_log",
        "session_run_log",
        "predict_streamed_log",
    ],
)
def test_a_record_of_another_kind_is_told_from_a_damaged_one(logs: Any, kind: str):
    log = logs.PredictionLog()
    getattr(log, kind).SetInParent()
    if kind == "classify_log":
        log.classify_log.request.model_spec.name = "m"
    with pytest.raises(OtherRecord, match=f"with a predict request. Received: {kind}"):
        decode_request(log.SerializeToString())


def test_numbers_beyond_their_type_are_refused():
    record = message_class("PredictionLog")()
    request = record.predict_log.request
    request.model_spec.name = "m"
    tensor = tf.make_tensor_proto(np.array([1], "int8"))
    tensor.ClearField("tensor_content")
    tensor.int_val.append(300)
    request.inputs["x"] = tensor.SerializeToString()
    with pytest.raises(ValueError, match="`record` must be a PredictionLog.*OverflowError"):
        decode_request(record.SerializeToString())


def test_a_record_is_read_as_it_was_written():
    found = decode_request(encode_request(REQUEST))
    assert (found.model, found.signature, found.rows) == ("topics", "tokens", 2)
    for name, batch in REQUEST.inputs.items():
        assert found.inputs[name].dtype == batch.dtype
        assert found.inputs[name].tolist() == batch.tolist()
    assert encode_request(found) == encode_request(REQUEST)


@pytest.mark.parametrize("record", [b"", b"\xff", b"\x32\x05ab", b"\x32\x02\x0a\x00", b"\x33\x00"])
def test_other_bytes_are_refused(record: bytes):
    with pytest.raises(ValueError, match="`record` must be a PredictionLog with a predict request"):
        decode_request(record)


def test_every_cut_of_a_record_is_refused_or_read_in_part():
    record = encode_request(REQUEST)
    for end in range(len(record)):
        with pytest.raises(ValueError, match="must be a PredictionLog"):
            decode_request(record[:end])
