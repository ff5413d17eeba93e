"""Prometheus metrics of the local server, under TF Serving's names where it has them.

Source of the names: tensorflow/serving, `servables/tensorflow/util.cc` and
`batching/batching_session.cc`; its times are in microseconds.
"""

import asyncio
import time
from collections import Counter as Count
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prometheus_client import CollectorRegistry, Gauge, Histogram, generate_latest
from prometheus_client.core import UnknownMetricFamily

from kbert.local_server.limits import Refusal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MICROSECONDS = [10.0 * 1.8**i for i in range(33)]
_ROWS = [2.0**i for i in range(8)]


class Metrics:
    """The metrics of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests: Count[tuple[str, str]] = Count()
        self.registry.register(self)
        self._latency = self._histogram(
            ":tensorflow:serving:request_latency",
            "Microseconds from a request's first byte to its answer.",
            _MICROSECONDS,
            ["model_name", "API", "entrypoint"],
        )
        self._queuing = self._histogram(
            ":tensorflow:serving:batching_session:queuing_latency",
            "Microseconds for which the oldest request of a batch waited.",
            _MICROSECONDS,
        )
        self._rows = self._histogram(
            ":tensorflow:serving:batching_session:input_batch_size",
            "Rows of the batches that the model ran.",
            _ROWS,
        )
        self._inside = Gauge(
            "kbert_requests_inside",
            "Requests that are read, wait or are answered now.",
            registry=self.registry,
        )

    def _histogram(
        self, name: str, about: str, buckets: list[float], labels: Sequence[str] = ("model_name",)
    ) -> Histogram:
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


class Request:
    """Labels of a request, known when it ends: a model that exists, and gRPC's status, or ""."""

    def __init__(self) -> None:
        # Names made up by clients must not become labels: each would stay in memory.
        self.model = ""
        self.status = ""
