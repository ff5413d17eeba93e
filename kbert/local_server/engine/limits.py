"""What the local server takes on: bytes of a request, requests at a time, seconds."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from kbert.local_server.engine.refusals import OVERLOADED, Refusal


@dataclass(frozen=True)
class Limits:
    """The numbers.

    Args:
        max_request_bytes: Of one request's body; of gRPC, of its message.
        max_concurrency: Requests that are read, wait or are answered at a time, over both
            protocols; what is more is refused at once.
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
    """Counts the requests that are inside. For one event loop.

    Args:
        limits: How many may be.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.inside = 0

    @contextmanager
    def admitted(self) -> Iterator[float]:
        """Lets one request in while the block runs; its deadline, on `time.monotonic`'s clock.

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
