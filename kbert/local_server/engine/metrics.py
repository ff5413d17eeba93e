"""Prometheus metrics of the local server, under TF Serving's names where it has them.

Source of the names: tensorflow/serving, `servables/tensorflow/util.cc` and
`batching/batching_session.cc`; its times are in microseconds.
"""

import asyncio
import time
from collections import Counter as Count
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import UnknownMetricFamily

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MICROSECONDS = [10.0 * 1.8**i for i in range(33)]
# Status of a request that ends without one.
_UNTOLD = "INTERNAL"
_ROWS = [1, 2, 4, 8, 16, 32, 64, 128]


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests: Count[tuple[str, str]] = Count()
        self.registry.register(self)
        self._latency = Histogram(
            ":tensorflow:serving:request_latency",
            "Microseconds from a request's first byte to its answer.",
            ["model_name", "API", "entrypoint"],
            registry=self.registry,
            buckets=_MICROSECONDS,
        )
        self._queuing = Histogram(
            ":tensorflow:serving:batching_session:queuing_latency",
            "Microseconds for which the oldest request of a batch waited.",
            ["model_name"],
            registry=self.registry,
            buckets=_MICROSECONDS,
        )
        self._rows = Histogram(
            ":tensorflow:serving:batching_session:input_batch_size",
            "Rows of the batches that the model ran.",
            ["model_name"],
            registry=self.registry,
            buckets=_ROWS,
        )
        self._inside = Gauge(
            "kbert_requests_inside",
            "Requests that are read, wait or are answered now.",
            registry=self.registry,
        )

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
        """Counts one request while the block runs.

        Args:
            entrypoint: "REST" or "GRPC".
        """
        start = time.monotonic()
        request = Request()
        self._inside.inc()
        try:
            yield request
        except asyncio.CancelledError:
            # Nobody waits for the answer any more; the handler sets the status if it knows why.
            if request.status == _UNTOLD:
                request.status = "CANCELLED"
            raise
        finally:
            self._inside.dec()
            self._requests[request.model, request.status] += 1
            latency = self._latency.labels(request.model, "Predict", entrypoint)
            latency.observe(1e6 * (time.monotonic() - start))

    def page(self) -> bytes:
        """Returns all metrics, in Prometheus' text format."""
        return generate_latest(self.registry)


class Request:
    """Labels of a request, known when it ends: a model that exists, and gRPC's status."""

    def __init__(self) -> None:
        # Names made up by clients must not become labels: each would stay in memory.
        self.model = ""
        self.status = _UNTOLD
