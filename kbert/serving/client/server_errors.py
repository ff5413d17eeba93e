"""Errors of a server, or of the connection to it; and retries of what may pass.

Source of the codes: tensorflow/serving, `http_server.cc`, ToHTTPStatusCode.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

Answer = TypeVar("Answer")
# Name of gRPC's status code -> HTTP's status; all others are 500.
HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "NOT_FOUND": 404,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
# The codes of further statuses, of proxies too; of several codes with one status, the first.
_OF_STATUS = {status: code for code, status in reversed(HTTP_STATUS.items())} | {
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    412: "FAILED_PRECONDITION",
    413: "INVALID_ARGUMENT",
    502: "UNAVAILABLE",
}
# Transient errors.
_PASSING = ("UNAVAILABLE", "RESOURCE_EXHAUSTED", "ABORTED")


class ServerError(RuntimeError):
    """A server did not answer a request; `code` is the name of gRPC's status code."""

    def __init__(self, code: str, message: str, target: str) -> None:
        super().__init__(f"{target} answered {code}: {message}")
        self.code = code
        self.message = message
        self.target = target

    @property
    def may_pass(self) -> bool:
        """Returns whether the same request may be answered a little later."""
        return self.code in _PASSING


class UnknownModel(ServerError):
    """The server has no such model, version or signature (NOT_FOUND)."""


class BadRequest(ServerError):
    """The request does not fit the model (INVALID_ARGUMENT, FAILED_PRECONDITION)."""


class Overloaded(ServerError):
    """The server refuses more, or cannot be reached (UNAVAILABLE, RESOURCE_EXHAUSTED)."""


class DeadlineExceeded(ServerError):
    """There was no answer in time."""


_CLASSES: dict[str, type[ServerError]] = {
    "NOT_FOUND": UnknownModel,
    "INVALID_ARGUMENT": BadRequest,
    "FAILED_PRECONDITION": BadRequest,
    "UNAVAILABLE": Overloaded,
    "RESOURCE_EXHAUSTED": Overloaded,
    "DEADLINE_EXCEEDED": DeadlineExceeded,
}


def server_error(code: str | int, message: str, target: str) -> ServerError:
    """Returns the error for the name of a gRPC status code, or the number of an HTTP status."""
    name = code if isinstance(code, str) else _OF_STATUS.get(code, "UNKNOWN")
    return _CLASSES.get(name, ServerError)(name, message, target)


@dataclass(frozen=True)
class Retries:
    """A policy for repeating requests: at most so many, with pauses in seconds.

    Only transient errors are retried: a server that refuses more or cannot be reached. Repeating a
    request does no harm. Each pause is twice as long as the one before, up to the longest, and
    randomly between half of it and all of it, so that many clients do not come back together.
    """

    most: int = 4
    pause: float = 0.1
    longest_pause: float = 5.0

    def __post_init__(self) -> None:
        for name in ("most", "pause", "longest_pause"):
            if (value := getattr(self, name)) < 0:
                raise ValueError(f"`{name}` must not be negative. Received: {name}={value}")

    def run(self, ask: Callable[[float], Answer], deadline: float, target: str) -> Answer:
        """Repeats a request until there is an answer, or a deadline on `time.monotonic`'s clock.

        `ask` takes the seconds that are left; its last `ServerError` is raised.
        """
        attempt = 0
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise DeadlineExceeded("DEADLINE_EXCEEDED", "no time was left to ask", target)
            try:
                return ask(left)
            except ServerError as error:
                pause = min(self.longest_pause, self.pause * 2.0 ** min(attempt, 60))
                pause *= random.uniform(0.5, 1.0)
                in_time = time.monotonic() + pause < deadline
                if not error.may_pass or attempt == self.most or not in_time:
                    raise
                time.sleep(pause)
                attempt += 1
