"""What is understood of a server's words over HTTP, besides what the client's tests ask."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.client.rest_transport import RestTransport
from kbert.serving.client.server_errors import BadRequest, ServerError
from kbert.serving.format.signatures import Signature, SignatureTensor

SIGNATURE = Signature(
    {"x": SignatureTensor("x:0", tf.float32, (None,))},
    {"y": SignatureTensor("y:0", tf.float32, (None,))},
)


@pytest.fixture
def said() -> Iterator[tuple[RestTransport, dict]]:
    """A transport, and what the server says next: status and content; what it heard is added."""
    words: dict = {"status": 200, "content": b"{}"}

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_POST(self):
            words["path"] = self.path
            words["heard"] = self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def do_GET(self):
            self.send_response(words["status"])
            self.send_header("Content-Length", str(len(words["content"])))
            self.end_headers()
            self.wfile.write(words["content"])

    server = HTTPServer(("127.0.0.1", 0), Handler)
    # `shutdown` waits for the next look at whether it was asked for.
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield RestTransport(f"http://127.0.0.1:{server.server_address[1]}/", "a b", 2), words
    server.shutdown()
    server.server_close()


def ask(transport: RestTransport):
    return transport.predict("f", SIGNATURE, {"x": np.array([0.5, np.nan], np.float32)}, 5.0)


def test_numbers_that_are_none(said):
    transport, words = said
    words["content"] = b'{"outputs": [NaN, Infinity]}'
    found = ask(transport)["y"]
    assert np.isnan(found[0]) and np.isinf(found[1])
    assert words["path"] == "/v1/models/a%20b/versions/2:predict"
    assert words["heard"] == b'{"signature_name": "f", "inputs": {"x": [0.5, NaN]}}'


@pytest.mark.parametrize(
    "content",
    [b"", b"<html>", b"[]", b"{}", b'{"outputs": {"z": [1]}}', b'{"outputs": [[1], 2]}', b"null"],
)
def test_an_answer_that_cannot_be_understood(said, content):
    transport, words = said
    words["content"] = content
    with pytest.raises(ServerError, match="answered INTERNAL"):
        ask(transport)
    with pytest.raises(ServerError, match="answered INTERNAL"):
        transport.signatures(5.0)
    with pytest.raises(ServerError, match="answered INTERNAL"):
        transport.status(5.0)


@pytest.mark.parametrize(
    "content, message",
    [
        (json.dumps({"error": "wrong type"}).encode(), "INVALID_ARGUMENT: wrong type"),
        (b"plain words", "INVALID_ARGUMENT: plain words"),
        (b"", "INVALID_ARGUMENT: HTTP 400"),
        (b"\xff" * 9999, "INVALID_ARGUMENT: "),
    ],
)
def test_a_refusal(said, content, message):
    transport, words = said
    words.update(status=400, content=content)
    with pytest.raises(BadRequest, match=message) as caught:
        ask(transport)
    assert len(str(caught.value)) < 1000


def test_redirects_are_not_followed(said):
    transport, words = said
    words["status"] = 302
    with pytest.raises(ServerError, match="UNKNOWN: "):
        ask(transport)


def test_an_empty_answer_has_all_its_dimensions(said):
    """As of rows without [MASK]: JSON has no third dimension inside an empty list."""
    transport, words = said
    words["content"] = b'{"outputs": [[], []]}'
    shape = (None, None, 5)
    signature = Signature(SIGNATURE.inputs, {"y": SignatureTensor("y:0", tf.float32, shape)})
    inputs = {"x": np.array([0.5, 1.0], np.float32)}
    assert transport.predict("f", signature, inputs, 5.0)["y"].shape == (2, 0, 5)


def test_texts_are_sent_as_they_are(said):
    transport, words = said
    words["content"] = b'{"outputs": [1.0]}'
    tensor = SignatureTensor("text:0", tf.string, (None,))
    for text, heard in (("ж", "ж".encode()), ("\ud800", b"\\ud800")):
        signature = Signature({"x": tensor}, SIGNATURE.outputs)
        transport.predict("f", signature, {"x": np.array([text], object)}, 5.0)
        assert words["heard"] == b'{"signature_name": "f", "inputs": {"x": ["' + heard + b'"]}}'
