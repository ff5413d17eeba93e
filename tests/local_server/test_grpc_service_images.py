"""Images over gRPC, where bytes are bytes."""

import numpy as np
import pytest
import tensorflow as tf

from kbert.local_server.server import LocalServer
from tests.local_server.page_models import MAPS, PIECES

grpc = pytest.importorskip("grpc", reason='pip install ".[serving]"')
apis = pytest.importorskip("tensorflow_serving.apis", reason='pip install ".[serving]"')

from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc  # noqa: E402


def ask(server: LocalServer, signature: str) -> dict[str, np.ndarray]:
    pixels = tf.zeros((4, 6, 3), tf.uint8)
    images = [tf.io.encode_png(pixels).numpy(), tf.io.encode_jpeg(pixels).numpy(), b"\xff\0"]
    asked = predict_pb2.PredictRequest()
    asked.model_spec.name, asked.model_spec.signature_name = "teller", signature
    asked.inputs["image"].CopyFrom(tf.make_tensor_proto(images))
    with grpc.insecure_channel(server.grpc_url.removeprefix("grpc://")) as channel:
        service = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        outputs = service.Predict(asked, timeout=20).outputs
    return {name: tf.make_ndarray(outputs[name]) for name in outputs}


def test_captions(teller_server: LocalServer):
    found = ask(teller_server, "serving_default")
    assert [text.decode() for text in found["caption"]] == ["a giant dög", "a giant dög", ""]
    assert found["nbest_caption"][:, 1].tolist() == [b"6 x 4", b"6 x 4", b"0 x 0"]
    assert found["problem"].tolist() == [b"", b"", b"it is no image of a known format"]


def test_maps(teller_server: LocalServer):
    found = ask(teller_server, "attention")
    assert [piece.decode() for piece in found["tokens"][1]] == list(PIECES)
    np.testing.assert_allclose(found["attention"][1], np.array(MAPS), atol=1e-7)
    assert not found["attention"][2].any()
