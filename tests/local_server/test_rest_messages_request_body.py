"""Bodies that are too large or too slow; the rest is asked of a whole server (test_rest_app)."""

import asyncio
import time

import pytest
from starlette.requests import Request

from kbert.local_server.limits import Refusal
from kbert.local_server.rest_messages import read_body


def read(parts, headers=(), most=10, seconds=5.0):
    """Reads a body that comes in parts; a number is a pause. The parts that were taken, too."""
    taken = []
    waiting = list(parts)

    async def receive():
        while waiting and isinstance(waiting[0], float):
            await asyncio.sleep(waiting.pop(0))
        if not waiting:
            return {"type": "http.disconnect"}
        taken.append(waiting.pop(0))
        more = any(isinstance(part, bytes) for part in waiting) or "stop" in waiting
        if taken[-1] == "stop":
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": taken[-1], "more_body": more}

    scope = {"type": "http", "headers": [(k.encode(), v.encode()) for k, v in headers]}
    request = Request(scope, receive)
    body = asyncio.run(read_body(request, most, time.monotonic() + seconds))
    return body, taken


def test_parts_are_joined():
    assert read([b"12345", b"67890"])[0] == b"1234567890"


@pytest.mark.parametrize("headers", [(), (("content-length", "15"),)])
def test_too_large(headers):
    with pytest.raises(Refusal, match="larger than 10 bytes") as caught:
        read([b"12345"] * 3, headers)
    assert caught.value.status == 413


def test_of_what_came_whole_no_more_is_waited_for():
    with pytest.raises(Refusal, match="larger than 10 bytes"):
        _, taken = read([b"12345678901", 60.0])
    # (The pause would be the next message, that never comes.)


def test_of_what_is_announced_and_asked_for_nothing_is_read():
    headers = (("content-length", "15"), ("expect", "100-continue"))
    parts = [b"12345"] * 3
    with pytest.raises(Refusal, match="larger than 10 bytes"):
        read(parts, headers)


def test_too_slow():
    start = time.monotonic()
    with pytest.raises(Refusal, match="did not arrive in time") as caught:
        read([b"1", 5.0, b"2"], seconds=0.1)
    assert caught.value.status == 408 and time.monotonic() - start < 3.0


def test_the_client_goes():
    with pytest.raises(Refusal, match="The client has gone") as caught:
        read([b"1", "stop"])
    assert caught.value.code == "CANCELLED"
