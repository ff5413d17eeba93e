"""gRPC with the official messages: what the client's tests do not ask."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tensorflow as tf
from prometheus_client.parser import text_string_to_metric_families

from kbert.local_server.grpc_service import _arrays
from kbert.local_server.limits import Metrics, Refusal
from kbert.local_server.server import LocalServer
from kbert.serving.format.signatures import Signature, SignatureTensor

grpc = pytest.importorskip("grpc", reason='pip install ".[serving]"')
apis = pytest.importorskip("tensorflow_serving.apis", reason='pip install ".[serving]"')

from grpc_health.v1 import health_pb2, health_pb2_grpc  # noqa: E402
from tensorflow_serving.apis import (  # noqa: E402
    classification_pb2,
    get_model_metadata_pb2,
    model_management_pb2,
    model_service_pb2_grpc,
    predict_pb2,
    prediction_service_pb2_grpc,
)


@pytest.fixture(scope="module")
def channel(server: LocalServer) -> Iterator:
    with grpc.insecure_channel(server.grpc_url.removeprefix("grpc://")) as channel:
        yield channel


@pytest.fixture(scope="module")
def service(channel):
    return prediction_service_pb2_grpc.PredictionServiceStub(channel)


def request(model="meter", signature="", version=None, label=None, **inputs):
    asked = predict_pb2.PredictRequest()
    asked.model_spec.name = model
    asked.model_spec.signature_name = signature
    if version is not None:
        asked.model_spec.version.value = version
    if label is not None:
        asked.model_spec.version_label = label
    for name, value in inputs.items():
        asked.inputs[name].CopyFrom(
            value if isinstance(value, tf.make_tensor_proto(1).__class__)
            else tf.make_tensor_proto(value)
        )
    return asked


def test_the_answer_tells_who_answered(service):
    found = service.Predict(request(text=[b"abc"]), timeout=9)
    spec = found.model_spec
    assert (spec.name, spec.version.value, spec.signature_name) == ("meter", 1, "serving_default")
    assert set(found.outputs) == {"length", "scores", "label"}
    asked = request(text=[b"abc"])
    asked.output_filter.append("length")
    assert set(service.Predict(asked, timeout=9).outputs) == {"length"}
    asked.output_filter.append("length")  # twice is once
    assert set(service.Predict(asked, timeout=9).outputs) == {"length"}


def test_unknown_outputs_are_refused_before_the_model_runs(server, service, monkeypatch):
    async def never(*_):
        raise AssertionError("the model was asked")

    monkeypatch.setattr(server.store, "answer", never)
    asked = request(text=[b"abc"])
    asked.output_filter.extend(["length", "logits"])
    with pytest.raises(grpc.RpcError) as caught:
        service.Predict(asked, timeout=9)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert caught.value.details() == (
        "output_filter must name outputs of ['label', 'length', 'scores'], and has 'logits'"
    )


def lying(value: object = 1, size: int = 10**9) -> tf.make_tensor_proto(1).__class__:
    """A few bytes whose shape promises a billion numbers."""
    proto = tf.make_tensor_proto([value])
    proto.tensor_shape.dim[0].size = size
    return proto


def no_rows_of(width: int) -> tf.make_tensor_proto(1).__class__:
    """No cells at all, of which a graph could make many: a range of their width, for example."""
    proto = tf.make_tensor_proto(np.zeros((0, 1), "int32"))
    proto.tensor_shape.dim[1].size = width
    return proto


def of_dimensions(count: int) -> tf.make_tensor_proto(1).__class__:
    """A number whose shape has so many dimensions of the largest size."""
    proto = tf.make_tensor_proto([b"a"])
    dims = proto.tensor_shape.__class__(dim=[{"size": 2**62}] * 1000)
    proto.tensor_shape.ClearField("dim")
    for _ in range(count // 1000):
        proto.tensor_shape.MergeFrom(dims)
    proto.tensor_shape.dim.add(size=1)
    return proto


def test_shapes_of_many_dimensions_are_refused_at_once():
    """The product of 100,000 such sizes takes 20 s; a message may hold seven times as many."""
    signature = Signature({"text": SignatureTensor("t:0", tf.string, None)}, {})
    start = time.monotonic()
    with pytest.raises(Refusal, match="input 'text': not such a shape"):
        _arrays({"text": of_dimensions(100_000)}, signature, 8 * 2**20)
    assert time.monotonic() - start < 5
    proto = of_dimensions(0)
    proto.tensor_shape.dim.extend([proto.tensor_shape.dim[0]] * 63)
    assert _arrays({"text": proto}, signature, 100)["text"].shape == (1,) * 64


def test_numbers_beyond_their_type(server, service, monkeypatch):
    model = server.store.models["meter"].pick().model
    small = Signature({"text": SignatureTensor("t:0", tf.int8, (None,))}, {})
    monkeypatch.setitem(model.signatures, "serving_default", small)
    proto = tf.make_tensor_proto(np.array([1], "int8"))
    proto.ClearField("tensor_content")
    proto.int_val.append(300)
    with pytest.raises(grpc.RpcError) as caught:
        service.Predict(request(text=proto), timeout=9)
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert "input 'text': Python integer 300 out of bounds for int8" in caught.value.details()


@pytest.mark.parametrize(
    "asked, code",
    [
        (request("other", text=[b"a"]), "NOT_FOUND"),
        (request("", text=[b"a"]), "INVALID_ARGUMENT"),
        (request(version=9, text=[b"a"]), "NOT_FOUND"),
        (request(label="stable", text=[b"a"]), "FAILED_PRECONDITION"),
        (request(signature="other", text=[b"a"]), "INVALID_ARGUMENT"),
        (request(text=[1]), "INVALID_ARGUMENT"),
        (request(text=[[b"a"]]), "INVALID_ARGUMENT"),
        (request(text=b"a"), "INVALID_ARGUMENT"),
        (request(words=[b"a"]), "INVALID_ARGUMENT"),
        (request(), "INVALID_ARGUMENT"),
        (request(text=[b"a"] * 1025), "INVALID_ARGUMENT"),
        (request(signature="tokens", lengths=lying()), "INVALID_ARGUMENT"),
        (request(signature="tokens", lengths=no_rows_of(400_000_000)), "INVALID_ARGUMENT"),
        (request(signature="tokens", lengths=no_rows_of(-1)), "INVALID_ARGUMENT"),
        (request(text=[b"x" * 200_000]), "RESOURCE_EXHAUSTED"),
    ],
)
def test_refusals(service, asked, code):
    with pytest.raises(grpc.RpcError) as caught:
        service.Predict(asked, timeout=9)
    assert caught.value.code().name == code
    assert "Traceback" not in caught.value.details() and ".py" not in caught.value.details()


@pytest.mark.parametrize(
    "size, words", [(70_000, "not such a shape"), (60_000, "may have 1024 rows")]
)
def test_one_value_for_many(service, size, words):
    """TensorFlow writes equal values once: so many cells are made of one, and no more."""
    with pytest.raises(grpc.RpcError) as caught:
        service.Predict(request(text=lying(b"a", size)), timeout=9)
    assert words in caught.value.details()


def test_one_text_for_many_is_as_large_as_they_are(service):
    with pytest.raises(grpc.RpcError) as caught:
        service.Predict(request(text=lying(b"a" * 60_000, 1000)), timeout=9)
    assert "not such a shape" in caught.value.details()
    alike = lying(b"abc" * 100, 7)
    assert list(service.Predict(request(text=alike), timeout=9).outputs["length"].int_val) == []


def test_the_clients_deadline(service):
    with pytest.raises(grpc.RpcError) as caught:
        service.Predict(request(text=[b"a"]), timeout=1e-4)
    assert caught.value.code().name == "DEADLINE_EXCEEDED"


def counted(metrics: Metrics) -> Counter:
    """Status -> requests of all models."""
    page = metrics.page().decode()
    return Counter({
        sample.labels["status"]: sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == ":tensorflow:serving:request_count" and sample.labels["model_name"]
    })


@pytest.mark.parametrize(
    "timeout, given_up, status",
    [(9, True, "CANCELLED"), (None, True, "CANCELLED"), (0.3, False, "DEADLINE_EXCEEDED")],
)
def test_what_is_given_up_is_no_fault_of_the_server(
    server: LocalServer, service, monkeypatch, caplog, timeout, given_up, status
):
    begun = threading.Event()

    async def never(*_):
        begun.set()
        await asyncio.sleep(60)

    monkeypatch.setattr(server.store, "answer", never)
    # Its own ones: a call of another test, given up too, may still be on its way to the others.
    monkeypatch.setattr(server.store, "metrics", metrics := Metrics())
    call = service.Predict.future(request(text=[b"a"]), timeout=timeout)
    assert begun.wait(9)
    if given_up:
        call.cancel()
    end = time.monotonic() + 9
    while not (new := counted(metrics)) and time.monotonic() < end:
        time.sleep(0.01)
    assert new == {status: 1} and not caplog.records


def test_what_is_left_out(service, channel):
    models = model_service_pb2_grpc.ModelServiceStub(channel)
    for method, asked in (
        (service.Classify, classification_pb2.ClassificationRequest()),
        (models.HandleReloadConfigRequest, model_management_pb2.ReloadConfigRequest()),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            method(asked, timeout=9)
        assert caught.value.code().name == "UNIMPLEMENTED"


def test_metadata(service):
    asked = get_model_metadata_pb2.GetModelMetadataRequest()
    asked.model_spec.name = "meter"
    with pytest.raises(grpc.RpcError, match="metadata_field must be 'signature_def' alone"):
        service.GetModelMetadata(asked, timeout=9)


def test_health(channel):
    health = health_pb2_grpc.HealthStub(channel)
    found = health.Check(health_pb2.HealthCheckRequest(), timeout=9)
    assert found.status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError, match="There is no such service"):
        health.Check(health_pb2.HealthCheckRequest(service="other"), timeout=9)


def test_many_at_a_time_get_their_own_rows(service):
    def ask(number: int) -> list[int]:
        asked = request(text=[b"x" * number, b"x" * (number + 1)])
        found = service.Predict(asked, timeout=9).outputs["length"]
        return list(tf.make_ndarray(found))

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(60)))
    assert found == [[n, n + 1] for n in range(60)]
