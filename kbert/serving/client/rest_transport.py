"""Requests to TF Serving over REST, each with a deadline.

Source: tensorflow/serving, `g3doc/api_rest.md`.
"""

import contextlib
import http.client
import io
import json
import socket
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import numpy as np
import requests
from google.protobuf import json_format
from requests.adapters import HTTPAdapter
from tensorflow.core.protobuf import meta_graph_pb2
from urllib3 import Timeout
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from kbert.serving.client.server_errors import server_error
from kbert.serving.format.json_tensors import from_json, to_json
from kbert.serving.format.signatures import Signature, signatures_of

# A socket with a timeout of zero does not wait at all, and raises another error.
_LEAST = 0.001
# Bytes of one write: those of a TLS record, for each of which a socket restarts its timeout.
_PART = 2**14
_SHOWN = 500
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
# Pooled connections: as many threads may send requests at a time without opening new ones.
_THREADS = 64


class RestTransport:
    """One model at a URL such as "http://localhost:8501"; connections are kept alive."""

    def __init__(self, url: str, model: str, version: int | None = None) -> None:
        number = "" if version is None else f"/versions/{version}"
        self.target = f"{url.rstrip('/')}/v1/models/{quote(model, safe='')}{number}"
        self._session = requests.Session()
        adapter = DeadlineAdapter(pool_maxsize=_THREADS)
        for kind in ("http://", "https://"):
            self._session.mount(kind, adapter)

    def predict(
        self, name: str, signature: Signature, inputs: Mapping[str, np.ndarray], seconds: float
    ) -> dict[str, np.ndarray]:
        """Calls a signature by its name, for so many seconds at most; raises ServerError."""
        columns = {key: to_json(batch) for key, batch in inputs.items()}
        body = {"signature_name": name, "inputs": columns}
        found = self._ask("POST", ":predict", seconds, body)
        with self._reading("an answer without its outputs"):
            outputs = found["outputs"]
            # TF Serving omits the name of a single output.
            named = isinstance(outputs, dict) and set(outputs) == set(signature.outputs)
            if len(signature.outputs) == 1 and not named:
                outputs = {next(iter(signature.outputs)): outputs}
            return {
                key: _of_rank(from_json(outputs[key], tensor.dtype), tensor.shape)
                for key, tensor in signature.outputs.items()
            }

    def signatures(self, seconds: float) -> dict[str, Signature]:
        """Requests the signatures of the model."""
        found = self._ask("GET", "/metadata", seconds)
        with self._reading("metadata that cannot be read"):
            listed = {"signature_def": found["metadata"]["signature_def"]["signature_def"]}
            meta_graph = meta_graph_pb2.MetaGraphDef()
            json_format.ParseDict(listed, meta_graph, ignore_unknown_fields=True)
            return signatures_of(meta_graph)

    def status(self, seconds: float) -> dict[int, str]:
        """Requests version -> state, such as "AVAILABLE"."""
        found = self._ask("GET", "", seconds)
        with self._reading("a status that cannot be read"):
            return {int(one["version"]): one["state"] for one in found["model_version_status"]}

    def close(self) -> None:
        """Closes the connections."""
        self._session.close()

    @contextlib.contextmanager
    def _reading(self, otherwise: str) -> Iterator[None]:
        try:
            yield
        except (*_UNREADABLE, json_format.ParseError) as error:
            raise server_error("INTERNAL", f"{otherwise}: {error!r}", self.target) from error

    def _ask(self, method: str, end: str, seconds: float, body: Any = None) -> Any:
        url = self.target + end
        data = None if body is None else _encoded(body)
        headers = {"Content-Type": "application/json"}
        deadline = time.monotonic() + seconds
        left: Any = Timeout(total=seconds)
        try:
            answer = self._session.request(
                method, url, data=data, headers=headers, timeout=left, allow_redirects=False
            )
            content = answer.content
        except requests.RequestException as error:
            # A stalled body does not raise `requests.Timeout`.
            if isinstance(error, requests.Timeout) or time.monotonic() >= deadline:
                words = f"no answer within {seconds:.3g} s"
                raise server_error("DEADLINE_EXCEEDED", words, url) from error
            raise server_error("UNAVAILABLE", str(error), url) from error
        if answer.status_code != 200:
            words = content.decode("utf-8", "replace").strip()
            try:
                words = str(json.loads(words)["error"])
            except (ValueError, KeyError, TypeError):
                words = words or f"HTTP {answer.status_code}"
            raise server_error(answer.status_code, words[:_SHOWN], url)
        try:
            return json.loads(content)
        except ValueError as error:
            words = f"{content[:_SHOWN]!r}, which is no JSON"
            raise server_error("INTERNAL", words, url) from error


def _encoded(body: Any) -> bytes:
    try:  # As UTF-8, texts are up to three times smaller than as \u escapes.
        return json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate, for which the server has an error
        return json.dumps(body).encode("utf-8")


def _of_rank(batch: np.ndarray, shape: tuple[int | None, ...] | None) -> np.ndarray:
    """Restores all dimensions of an empty batch: JSON has none inside an empty list."""
    if batch.size or shape is None or batch.ndim >= len(shape):
        return batch
    return batch.reshape(*batch.shape, *(size or 0 for size in shape[batch.ndim :]))


class _TimedReads(io.RawIOBase):
    """A socket's stream with a deadline, on the clock of `time.monotonic`."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, deadline: float) -> None:
        self._raw = raw
        self._sock = sock
        self._deadline = deadline

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError("timed out")
        self._sock.settimeout(max(_LEAST, left))
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """A response all of which must come within the initial timeout of its socket."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        seconds = sock.gettimeout()
        if seconds is not None:
            reads = _TimedReads(self.fp.detach(), sock, time.monotonic() + seconds)
            self.fp = io.BufferedReader(reads)


class _Timed:
    """A connection whose `timeout`, once set, decreases as time passes."""

    response_class: Any = _TimedResponse
    sock: Any
    _deadline: float | None = None
    _timeout: Any = None

    def _left(self) -> Any:
        if self._deadline is None:
            return self._timeout
        return max(_LEAST, self._deadline - time.monotonic())

    def _begin(self, timeout: Any) -> None:
        self._timeout = timeout
        is_time = isinstance(timeout, int | float)
        self._deadline = time.monotonic() + timeout if is_time else None

    timeout: Any = property(_left, _begin)

    def send(self, data: Any) -> None:
        # mypy sees only the base of this mix-in, `object`; a connection's `super()` has a `send`.
        send = super().send  # type: ignore[misc]
        if self.sock is None or not isinstance(data, bytes):
            send(data)  # the head, whose sending connects first
            return
        view = memoryview(data)
        for start in range(0, len(view), _PART):
            if self._deadline is not None and time.monotonic() >= self._deadline:
                raise TimeoutError("timed out")
            self.sock.settimeout(self.timeout)
            send(view[start : start + _PART])


class _Connection(_Timed, HTTPConnection):
    pass


class _SecureConnection(_Timed, HTTPSConnection):
    pass


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _SecureConnection


class DeadlineAdapter(HTTPAdapter):
    """Connections of `requests` with a timeout of the whole exchange.

    `requests` and urllib3 restart the timeout at each read and each write: a server that sends a
    byte now and then keeps a request for ever. Here a `urllib3.Timeout(total=seconds)` is a
    deadline of everything: connecting, the request, the response's head and its body. Not covered
    are DNS look-ups, a second address of a name, which has the same time again, and SOCKS proxies.
    """

    _POOLS = {"http": _Pool, "https": _SecurePool}

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Creates the pools of connections without a proxy."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = self._POOLS

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        """Creates the pools of connections through a proxy."""
        manager = super().proxy_manager_for(proxy, **kwargs)
        if not proxy.lower().startswith("socks"):
            manager.pool_classes_by_scheme = self._POOLS
        return manager
