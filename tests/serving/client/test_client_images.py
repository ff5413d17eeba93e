"""Images as the client sends them: bytes that are no text, over both protocols."""

import json
from collections.abc import Iterator

import numpy as np
import pytest
import tensorflow as tf

from kbert.local_server.server import LocalServer, ServerOptions
from kbert.serving.client.client import Client
from kbert.serving.client.typed_answers import Caption
from kbert.serving.export.export import export
from tests.local_server.page_models import MAPS, PIECES, Teller


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    base = tmp_path_factory.mktemp("tellers")
    export(Teller(), base, max_batch_size=0)
    with LocalServer(base, ServerOptions(rest_port=0, grpc_port=0)) as running:
        yield running


@pytest.fixture(params=["rest", "grpc"])
def asked(request: pytest.FixtureRequest, server: LocalServer) -> Iterator[Client]:
    url = server.rest_url if request.param == "rest" else server.grpc_url
    with Client(url, "teller") as client:
        yield client


def images() -> list[bytes]:
    """A PNG, a JPEG, and three that are none: a text, nothing, and bytes with a NUL at the end."""
    pixels = np.full((20, 30, 3), 128, np.uint8)
    files = [tf.io.encode_png(pixels).numpy(), tf.io.encode_jpeg(pixels).numpy()]
    return [*files, b"text", b"", b"\xff\0"]


def test_captions_come_back(asked: Client):
    found = asked.answers(images())
    caption = Caption("a giant dög", -0.25, [("a giant dög", -0.25), ("30 x 20", -1.5)])
    assert found[:2] == [caption, caption]
    for one in found[2:]:
        assert isinstance(one, Caption) and one.caption == ""
        assert one.problem == "it is no image of a known format"


def test_maps_come_back(asked: Client):
    found = asked.predict({"image": images()[:3]}, "attention")
    assert [token.decode() for token in found["tokens"][0]] == list(PIECES)
    np.testing.assert_allclose(found["attention"][1], np.array(MAPS), atol=1e-7)
    assert not found["attention"][2].any() and found["problem"][2] != b""


def test_bytes_are_sent_as_base64(server: LocalServer, monkeypatch):
    with Client(server.rest_url, "teller") as asked:
        send, bodies = asked._transport._session.request, []

        def noted(method, url, **options):
            bodies.append(options["data"])
            return send(method, url, **options)

        monkeypatch.setattr(asked._transport._session, "request", noted)
        asked.predict({"image": [b"\xff\xd8", "text"]}, "attention")
    # By hand: ff d8 is 111111 111101 1000 and two zeros.
    sent = json.loads(bodies[-1])["inputs"]["image"]
    assert len(sent) == 2 and "text" in sent and {"b64": "/9g="} in sent
