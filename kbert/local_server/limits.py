"""Options and limits of the local server, the errors of refused requests, and its metrics.

The metrics have TF Serving's names where it has them. Source: tensorflow/serving,
`servables/tensorflow/util.cc` and `batching/batching_session.cc`; its times are in microseconds.
"""

import asyncio
import math
import time
from collections import Counter as Count
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import UnknownMetricFamily

from kbert.serving.client.server_errors import HTTP_STATUS

# Larger requests are converted to arrays in a thread, not to block others.
LARGE_BYTES = 64 * 2**10
# Of a request to a model without a batching file. TF Serving has no limit here; so many rows may
# take minutes.
_MOST_ROWS = 1024
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MICROSECONDS = [10.0 * 1.8**i for i in range(33)]
_ROWS = [2.0**i for i in range(8)]
_ENTRYPOINT = ("model_name", "API", "entrypoint")
OVERLOADED = 503
NO_PORT = -1


class Refusal(Exception):
    """The error of a refused request, with the name of gRPC's status code.

    Clients get the message: no traceback, no path of this machine; and HTTP's `status`.
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


def invalid(message: str) -> Refusal:
    """Returns the refusal of a request that does not fit the model."""
    return Refusal("INVALID_ARGUMENT", message)


def check_rows(rows: int) -> None:
    """Refuses a request of too many rows."""
    if rows > _MOST_ROWS:
        raise invalid(f"A request may have {_MOST_ROWS} rows, and has {rows}")


async def in_thread(large: bool, function: Callable[..., Any], *arguments: Any) -> Any:
    """Calls a function, in a thread if what it works on is large."""
    return await asyncio.to_thread(function, *arguments) if large else function(*arguments)


@dataclass(frozen=True)
class Limits:
    """Limits on requests, over both protocols.

    These are the bytes of a body or message, the requests that are read, wait or are answered at a
    time, and the seconds from the first byte of one to its answer.
    """

    max_request_bytes: int = 8 * 2**20
    max_concurrency: int = 128
    timeout: float = 30.0

    def __post_init__(self) -> None:
        for name in ("max_request_bytes", "max_concurrency", "timeout"):
            if not 0 < (value := getattr(self, name)) < math.inf:
                raise ValueError(
                    f"`{name}` must be positive and finite. Received: {name}={value}"
                )


@dataclass(frozen=True)
class ServerOptions:
    """Options of a local server: port 0 stands for a free one, a `grpc_port` of -1 for none.

    With `web` it serves the page to try models; every `poll_seconds` it looks for new versions.
    """

    host: str = "127.0.0.1"
    rest_port: int = 8501
    grpc_port: int = 8500
    web: bool = False
    poll_seconds: float = 1.0
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.poll_seconds > 0:
            raise ValueError(
                f"`poll_seconds` must be positive. Received: poll_seconds={self.poll_seconds}"
            )
        for name, low in (("rest_port", 0), ("grpc_port", NO_PORT)):
            if not low <= (port := getattr(self, name)) < 2**16:
                raise ValueError(f"`{name}` must be from {low} to 65535. Received: {name}={port}")


class Gate:
    """Limits the number of concurrent requests. For one event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.inside = 0

    @contextmanager
    def admitted(self) -> Iterator[float]:
        """Admits one request while the block runs, or refuses it; yields its deadline."""
        most = self.limits.max_concurrency
        if self.inside >= most:
            words = f"The server is full: it answers {most} requests at a time"
            raise Refusal("RESOURCE_EXHAUSTED", words, OVERLOADED)
        self.inside += 1
        try:
            yield time.monotonic() + self.limits.timeout
        finally:
            self.inside -= 1


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests: Count[tuple[str, str]] = Count()
        self.registry.register(self)
        about = "Microseconds from a request's first byte to its answer."
        self._latency = self._histogram("request_latency", about, _MICROSECONDS, _ENTRYPOINT)
        about = "Microseconds for which the oldest request of a batch waited."
        self._queuing = self._histogram("batching_session:queuing_latency", about, _MICROSECONDS)
        about = "Rows of the batches that the model ran."
        self._rows = self._histogram("batching_session:input_batch_size", about, _ROWS)
        about = "Requests that are read, wait or are answered now."
        self._inside = Gauge("kbert_requests_inside", about, registry=self.registry)

    def _histogram(
        self, name: str, about: str, buckets: list[float], labels: Sequence[str] = ("model_name",)
    ) -> Histogram:
        name = f":tensorflow:serving:{name}"
        return Histogram(name, about, labels, registry=self.registry, buckets=buckets)

    def collect(self) -> Iterator[Any]:
        """Yields the requests by model and status; prometheus-client calls it.

        Its own `Counter` would be renamed to `..._total`, which no dashboard for TF Serving knows.
        """
        family = UnknownMetricFamily(
            ":tensorflow:serving:request_count",
            "Requests by model and status.",
            labels=["model_name", "status"],
        )
        for labels, count in sorted(self._requests.items()):
            family.add_metric(list(labels), count)
        yield family

    def batches_of(self, model: str) -> Callable[[int, float], None]:
        """Returns a callback that counts a model's batches: their rows, and seconds of waiting."""
        rows_of, waiting = self._rows.labels(model), self._queuing.labels(model)

        def told(rows: int, seconds: float) -> None:
            rows_of.observe(rows)
            waiting.observe(1e6 * seconds)

        return told

    @contextmanager
    def request(self, entrypoint: str) -> Iterator["Request"]:
        """Counts one request, by "REST" or "GRPC", while the block runs: "OK" if it just ends."""
        start = time.monotonic()
        request = Request()
        self._inside.inc()
        try:
            yield request
            request.status = request.status or "OK"
        except Refusal as refusal:
            request.status = refusal.code
            raise
        except asyncio.CancelledError:
            # Nobody waits for the answer any more; the handler sets the status if it knows why.
            request.status = request.status or "CANCELLED"
            raise
        finally:
            self._inside.dec()
            self._requests[request.model, request.status or "INTERNAL"] += 1
            latency = self._latency.labels(request.model, "Predict", entrypoint)
            latency.observe(1e6 * (time.monotonic() - start))

    def page(self) -> bytes:
        """Returns all metrics, in Prometheus' text format."""
        return generate_latest(self.registry)


@dataclass
class Request:
    """Labels of a request, known when it ends: a model that exists, and gRPC's status, or ""."""

    # Names made up by clients must not become labels: each would stay in memory.
    model: str = ""
    status: str = ""
