"""Connections of `requests` with a timeout of the whole exchange.

`requests` and urllib3 restart the timeout at each read and each write: a server that sends a byte
now and then keeps a request for ever. Here a timeout is a deadline of everything: connecting, the
request, the response's head and its body. Not covered are DNS look-ups, and the second address of a
name whose first one does not answer, which has the same time again.
"""

import http.client
import io
import socket
import time
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

# A socket with a timeout of zero does not wait at all, and raises another error.
_LEAST = 0.001
# Bytes of one write: those of a TLS record, for each of which a socket restarts its timeout.
_PART = 2**14


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
    """An adapter with deadlines, to mount in a `requests.Session`.

    Each request needs a `urllib3.Timeout(total=seconds)`. Through a SOCKS proxy a timeout has its
    usual meaning.
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
