"""Servers that never quite stop talking, or listening: each call ends at its deadline."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
import pytest
import tensorflow as tf

from kbert.serving.client.client import Client
from kbert.serving.client.rest_transport import RestTransport
from kbert.serving.client.server_errors import DeadlineExceeded, Retries
from kbert.serving.format.signatures import Signature, SignatureTensor

HEAD = b"HTTP/1.1 200 OK\r\n"
SECONDS = 0.3
Talk = Callable[[socket.socket], None]


@contextmanager
def talking(talk: Talk) -> Iterator[str]:
    """The address of a server that does `talk` with each connection, in a thread each."""
    listener = socket.create_server(("127.0.0.1", 0))
    taken = []

    def one(connection: socket.socket) -> None:
        with suppress(OSError):
            talk(connection)

    def serve() -> None:
        with suppress(OSError):
            while True:
                taken.append(listener.accept()[0])
                threading.Thread(target=one, args=(taken[-1],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    for connection in taken:
        connection.close()


def trickle(first: bytes, drop: bytes) -> Talk:
    """Says `first`, then `drop` ten times a second for ten seconds."""

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(first)
        for _ in range(100):
            time.sleep(0.1)
            connection.sendall(drop)

    return talk


@pytest.mark.parametrize(
    "first, drop",
    [
        (b"", b"H"),
        (HEAD, b"a: b\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (HEAD + b"Content-Length: 1000\r\n\r\n", b"{"),
        (HEAD + b"\r\n", b"{"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n", b"0"),
    ],
)
def test_an_answer_that_trickles(first: bytes, drop: bytes):
    with talking(trickle(first, drop)) as url, Client(url, "m", timeout=SECONDS) as client:
        start = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            client.signatures()
        assert SECONDS <= time.monotonic() - start < SECONDS + 1.0


def test_an_answer_that_stops():
    """A body of which no more comes is late, and not a server that is gone."""

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(HEAD + b"Content-Length: 9\r\n\r\n{")
        time.sleep(5)

    with talking(talk) as url, Client(url, "m", timeout=SECONDS) as client:
        with pytest.raises(DeadlineExceeded):
            client.status()


def test_a_question_that_is_taken_slowly():
    """More bytes than the two sockets hold, of a server that reads a few at a time."""

    def talk(connection: socket.socket) -> None:
        for _ in range(100):
            connection.recv(1024)
            time.sleep(0.1)

    signature = Signature({"x": SignatureTensor("x:0", tf.string, (None,))}, {})
    inputs = {"x": np.array([b"x" * 2**24], object)}
    with talking(talk) as url:
        start = time.monotonic()
        with pytest.raises(DeadlineExceeded):
            RestTransport(url, "m").predict("f", signature, inputs, SECONDS)
        assert time.monotonic() - start < SECONDS + 1.0


def test_retries_and_trickles_share_the_time():
    """The second time is given what the first one left."""
    asked = []

    def talk(connection: socket.socket) -> None:
        asked.append(time.monotonic())
        if len(asked) > 1:
            return trickle(HEAD, b"a: b\r\n")(connection)
        connection.recv(65536)
        time.sleep(SECONDS)
        connection.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")
        connection.close()

    with talking(talk) as url:
        with Client(url, "m", timeout=2 * SECONDS, retries=Retries(pause=0.01)) as client:
            start = time.monotonic()
            with pytest.raises(DeadlineExceeded):
                client.status()
            assert time.monotonic() - start < 2 * SECONDS + 0.5
    assert len(asked) == 2


def test_a_connection_that_is_kept_has_new_time():
    """What one request used up of its time is not taken from the next one's."""
    reply = HEAD + b"Content-Length: 29\r\n\r\n" + b'{"model_version_status": [ ]}'

    def talk(connection: socket.socket) -> None:
        for seconds in (0.4, 0.0, 0.4):
            connection.recv(65536)
            time.sleep(seconds)
            connection.sendall(reply)

    with talking(talk) as url:
        transport = RestTransport(url, "m")
        assert [transport.status(seconds) for seconds in (0.5, 0.1, 5.0)] == [{}, {}, {}]


def test_all_of_an_answer_that_comes_in_time():
    words = b'{"model_version_status": [{"version": "1", "state": "AVAILABLE"}]}'

    def talk(connection: socket.socket) -> None:
        connection.recv(65536)
        for byte in HEAD + b"Content-Length: %d\r\n\r\n" % len(words) + words:
            connection.sendall(bytes([byte]))
            time.sleep(0.001)

    with talking(talk) as url:
        assert RestTransport(url, "m").status(20.0) == {1: "AVAILABLE"}
