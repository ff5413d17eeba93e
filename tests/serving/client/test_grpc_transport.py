"""gRPC without its packages; with them, the tests of the client ask a server."""

import builtins

import pytest

from kbert.serving.client.grpc_transport import GrpcTransport


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
