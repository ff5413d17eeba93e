"""gRPC without its packages; with them, the tests of the client ask a server."""

import builtins

import pytest

from kbert.serving.client.grpc_transport import GrpcTransport
from kbert.serving.client.server_errors import ServerError


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *arguments, **options):
        if name.split(".")[0] in ("grpc", "tensorflow_serving"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r'pip install "\.\[serving\]".*REST needs neither'):
        GrpcTransport("localhost:8500", "m")


def test_who_is_asked():
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')
    for secure in (False, True):
        transport = GrpcTransport("localhost:8500", "m", 3, secure)
        assert transport.target == "localhost:8500, model m, version 3"
        transport.close()


@pytest.mark.parametrize(
    "words, code",
    [
        ("Received message larger than max (9 vs. 8)", "INVALID_ARGUMENT"),
        ("The server is full", "RESOURCE_EXHAUSTED"),
    ],
)
def test_a_request_that_is_too_large_is_not_repeated(words: str, code: str):
    """As over REST; what is full may pass."""
    grpc = pytest.importorskip("grpc", reason='pip install ".[serving]"')
    pytest.importorskip("tensorflow_serving", reason='pip install ".[serving]"')

    class Refused(grpc.RpcError):
        def code(self):
            return grpc.StatusCode.RESOURCE_EXHAUSTED

        def details(self):
            return words

    def method(request, timeout):
        raise Refused

    transport = GrpcTransport("localhost:8500", "m")
    with pytest.raises(ServerError, match=words.replace("(", r"\(").replace(")", r"\)")) as caught:
        transport._ask(method, None, 1.0)
    assert caught.value.code == code and caught.value.may_pass == (code != "INVALID_ARGUMENT")
    transport.close()
