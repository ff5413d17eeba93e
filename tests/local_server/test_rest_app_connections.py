"""Clients that are too slow lose their connection, and nobody else does."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import pytest
import uvicorn

from kbert.local_server.rest_app import TimedConnection


async def app(scope, receive, send):
    headers = [(b"content-length", str(LARGE).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * LARGE})


LARGE = 30_000_000


@contextmanager
def serving(connection) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=connection, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    thread = Thread(target=lambda: asyncio.run(server.serve([listener])))
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    class Quick(TimedConnection):
        head_timeout = 0.3
        write_timeout = 0.3

    with serving(Quick) as port:
        yield port


def read(connection: socket.socket, size: int) -> None:
    """Reads so many bytes of an answer."""
    connection.settimeout(5)
    while size > 0:
        part = connection.recv(2**20)
        assert part
        size -= len(part)


def closed_after(connection: socket.socket) -> float:
    """Seconds until the server ends a connection."""
    start = time.monotonic()
    connection.settimeout(5)
    try:
        while connection.recv(2**20):
            pass
    except ConnectionResetError:
        pass
    return time.monotonic() - start


def test_a_head_that_does_not_come(port: int):
    with socket.create_connection(("127.0.0.1", port)) as silent:
        assert closed_after(silent) < 3.0


HEAD = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def test_a_second_head_that_does_not_come(port: int):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(HEAD + b"GET / HT")
        read(connection, LARGE)
        assert closed_after(connection) < 3


def test_a_client_that_has_said_all_gets_its_answer(port: int):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(HEAD)
        connection.shutdown(socket.SHUT_WR)
        read(connection, LARGE)
        assert closed_after(connection) < 3


def test_what_is_no_http_after_an_answer(port: int, caplog: pytest.LogCaptureFixture):
    """The answer comes before the body does, which then is none."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        head = HEAD.replace(b"GET", b"POST")[:-2] + b"Transfer-Encoding: chunked\r\n"
        connection.sendall(head + b"Upgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        read(connection, LARGE)
        connection.sendall(b"ZZ\r\n")
        assert closed_after(connection) < 3
    assert caplog.messages == ["Invalid HTTP request received."]  # and no traceback


def test_a_head_that_comes_drop_by_drop(port: int):
    start = time.monotonic()
    with socket.create_connection(("127.0.0.1", port)) as slow, pytest.raises(OSError):
        for _ in range(50):
            slow.sendall(b"X")
            time.sleep(0.1)
    assert time.monotonic() - start < 4.0


def test_an_answer_that_is_not_taken(port: int):
    with socket.create_connection(("127.0.0.1", port)) as lazy:
        lazy.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        time.sleep(1.0)
        lazy.settimeout(5)
        received = 0
        with pytest.raises((ConnectionResetError, AssertionError)):
            while part := lazy.recv(2**20):
                received += len(part)
            assert received >= LARGE
    with socket.create_connection(("127.0.0.1", port)) as quick:
        quick.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = 0
        while part := quick.recv(2**20):
            received += len(part)
    assert received > LARGE


def test_an_answer_that_is_taken_slowly(port: int):
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received, start = 0, time.monotonic()
        while part := slow.recv(2**18):
            received += len(part)
            time.sleep(0.01)
    assert received > LARGE and time.monotonic() - start > 2 * 0.3
