"""Limits of the local server, and the errors with which it refuses a request."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kbert.serving.client.server_errors import HTTP_STATUS

OVERLOADED = 503


class Refusal(Exception):
    """The error of a refused request.

    Args:
        code: The name of gRPC's status code.
        message: Message for the client: no traceback, no path of this machine.
        status: HTTP's status; by default TF Serving's status for the code.
    """

    def __init__(self, code: str, message: str, status: int | None = None) -> None:
        # It may repeat a client's text, and lone surrogates cannot be encoded.
        self.message = message.encode("utf-8", "replace").decode("utf-8")
        super().__init__(self.message)
        self.code = code
        self.status = HTTP_STATUS.get(code, 500) if status is None else status

    @property
    def may_pass(self) -> bool:
        """Returns whether the same request may be answered a little later."""
        return self.status in (429, OVERLOADED)


@dataclass(frozen=True)
class Limits:
    """Limits on requests.

    Args:
        max_request_bytes: Bytes of one request's body; for gRPC, of its message.
        max_concurrency: Requests that are read, wait or are answered at a time, over both
            protocols; more are refused at once.
        timeout: Seconds for one request, from its first byte to its answer.

    Raises:
        ValueError: A number is not positive.
    """

    max_request_bytes: int = 8 * 2**20
    max_concurrency: int = 128
    timeout: float = 30.0

    def __post_init__(self) -> None:
        for name in ("max_request_bytes", "max_concurrency", "timeout"):
            if not getattr(self, name) > 0:
                raise ValueError(
                    f"`{name}` must be positive. Received: {name}={getattr(self, name)}"
                )


class Gate:
    """Limits the number of concurrent requests. For one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.inside = 0

    @contextmanager
    def admitted(self) -> Iterator[float]:
        """Admits one request while the block runs; yields its `time.monotonic` deadline.

        Raises:
            Refusal: The server is full.
        """
        if self.inside >= self.limits.max_concurrency:
            raise Refusal(
                "RESOURCE_EXHAUSTED",
                f"The server is full: it answers {self.limits.max_concurrency} requests at a time",
                OVERLOADED,
            )
        self.inside += 1
        try:
            yield time.monotonic() + self.limits.timeout
        finally:
            self.inside -= 1
