"""Clients that are too slow lose their connection, and nobody else does."""

import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest
import uvicorn

from kbert.local_server.rest_app import TimedConnection


async def app(scope, receive, send):
    size = int(scope["path"][1:] or LARGE)
    headers = [(b"content-length", str(size).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * size})


LARGE = 30_000_000


@contextmanager
def serving(connection, keep_alive: int = 5) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(
        app, http=connection, log_config=None, lifespan="off", timeout_keep_alive=keep_alive
    )
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


POST = b"POST /9 HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\n"


def answer(connection: socket.socket) -> bytes:
    """The end of an answer of nine letters, all of which is read."""
    connection.settimeout(5)
    found = b""
    while not found.endswith(b"x" * 9):
        part = connection.recv(2**10)
        assert part
        found += part
    return found


@pytest.fixture
def patient() -> Iterator[int]:
    """Waits longer for the next request than for a head."""

    class Quick(TimedConnection):
        head_timeout = 0.2
        write_timeout = 1.0

    with serving(Quick, keep_alive=2) as port:
        yield port


def test_a_body_that_comes_after_its_answer(patient: int):
    """The connection is idle then: another request may come, until the time for idle ones is over.
    """
    with socket.create_connection(("127.0.0.1", patient)) as connection:
        connection.sendall(POST)
        answer(connection)
        connection.sendall(b"abc")
        connection.sendall(b"def")
        time.sleep(0.4)
        connection.sendall(POST)
        answer(connection)
        connection.sendall(b"abcdef")
        assert closed_after(connection) < 6


@pytest.mark.parametrize("rest", [b"abc", b"abcdefGET / HT"])
def test_a_part_of_a_body_or_of_a_head_that_comes_after_an_answer(port: int, rest: bytes):
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(POST)
        answer(connection)
        connection.sendall(rest)
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


class Narrow(TimedConnection):
    """The system buffers little, and asyncio much before it asks for a pause."""

    head_timeout = write_timeout = 0.6
    last: "Narrow"

    def connection_made(self, transport):
        Narrow.last, self.lost, self.pauses = self, Event(), 0
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        transport.set_write_buffer_limits(high=200_000, low=150_000)
        super().connection_made(transport)

    def pause_writing(self):
        self.pauses += 1
        super().pause_writing()

    def connection_lost(self, exc):
        self.lost.set()
        super().connection_lost(exc)


@pytest.fixture(scope="module")
def narrow() -> Iterator[int]:
    with serving(Narrow, keep_alive=60) as port:
        yield port


@contextmanager
def asked(port: int, size: int, more: bytes = b"") -> Iterator[socket.socket]:
    """A client with a small buffer that has asked for so many bytes."""
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.settimeout(5)
        connection.sendall(f"GET /{size} HTTP/1.1\r\nHost: a\r\n".encode() + more + b"\r\n")
        assert connection.recv(1)
        yield connection


CLOSE = b"Connection: close\r\n"


@pytest.mark.parametrize("more", [b"", CLOSE])
@pytest.mark.parametrize(
    "size, taken, pauses",
    [
        (100_000, 0, 0),  # too small for a pause
        (300_000, 200_000, 1),  # paused and resumed; then nothing more is taken
    ],
)
def test_the_rest_of_an_answer_that_is_not_taken(narrow: int, size, taken, pauses, more):
    with asked(narrow, size, more) as lazy:
        while taken > 0:
            taken -= len(lazy.recv(min(taken, 2**14)))
        assert Narrow.last.lost.wait(5)
    assert Narrow.last.pauses == pauses


def test_an_answer_of_which_a_part_is_taken_before_the_end(narrow: int):
    """The connection is to be closed, so the transport is closing when the timer looks again."""
    with asked(narrow, 1_000_000, CLOSE) as lazy:
        end = time.monotonic() + 0.9
        while time.monotonic() < end:
            lazy.recv(2**12)
            time.sleep(0.02)
        assert Narrow.last.lost.wait(5)
    assert Narrow.last.pauses == 1


def test_an_answer_that_was_taken_leaves_no_timer(narrow: int):
    with asked(narrow, 100_000) as connection:
        received = 1
        while received < 100_000:
            received += len(connection.recv(2**14))
        time.sleep(1.0)
        connection.sendall(b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\n")
        while not connection.recv(2**14).endswith(b"x"):
            pass
        assert not Narrow.last.lost.is_set()


def test_an_answer_of_which_the_system_holds_much(patient: int):
    """It takes more of asyncio's part only when a third of its own is free: after many seconds."""
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**16)
        slow.connect(("127.0.0.1", patient))
        slow.settimeout(5)
        slow.sendall(HEAD)
        received, end = 0, time.monotonic() + 2.2
        while time.monotonic() < end:
            received += len(slow.recv(2**13))
            time.sleep(0.02)
        read(slow, LARGE - received)
