"""The body of an HTTP request, read within a size and a time."""

import asyncio
import time

from starlette.requests import Request

from kbert.local_server.engine.refusals import Refusal

# Of a body that is too large, so much more is read and thrown away, so that the client, which still
# sends, gets to read the answer; then the connection is closed.
_MORE = 4
_LINGER = 5.0


async def read_body(request: Request, most: int, deadline: float) -> bytes:
    """Reads a body.

    Args:
        request: The request.
        most: Bytes.
        deadline: On the clock of `time.monotonic`.

    Raises:
        Refusal: It is larger (413), or not all of it came in time (408).
    """
    told = request.headers.get("content-length", "")
    announced = int(told) if told.isdecimal() else 0
    parts: list[bytes] = []
    size, is_whole = 0, False
    try:
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            while max(size, announced) <= most:
                message = await request.receive()
                if message["type"] == "http.disconnect":
                    raise Refusal("CANCELLED", "The client has gone")
                parts.append(message.get("body", b""))
                size, is_whole = size + len(parts[-1]), not message.get("more_body", False)
                if is_whole and size <= most:
                    return b"".join(parts)
    except TimeoutError as error:
        raise Refusal("DEADLINE_EXCEEDED", "The request did not arrive in time", 408) from error
    parts.clear()
    # A client that asks first (Expect: 100-continue, as curl does) sends nothing more.
    if not is_whole and "100-continue" not in request.headers.get("expect", "").lower():
        await _linger(request, _MORE * most)
    words = f"The request is larger than {most} bytes"
    raise Refusal("INVALID_ARGUMENT", words, 413)


async def _linger(request: Request, most: int) -> None:
    """Reads on, for a while, and forgets what comes."""
    size = 0
    try:
        async with asyncio.timeout(_LINGER):
            while size < most:
                message = await request.receive()
                size += len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
    except TimeoutError:
        return
