"""What Prometheus reads, parsed by its own library."""

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from kbert.local_server.limits import Metrics


def samples(metrics: Metrics) -> dict[tuple[str, frozenset[str]], float]:
    families = text_string_to_metric_families(metrics.page().decode())
    return {
        (sample.name, frozenset(sample.labels.values())): sample.value
        for family in families
        for sample in family.samples
    }


def test_requests_are_counted_by_model_and_status():
    metrics = Metrics()
    for status in ("OK", "OK", "NOT_FOUND"):
        with metrics.request("REST") as request:
            request.model, request.status = "m", status
    with pytest.raises(KeyError), metrics.request("GRPC"):
        raise KeyError("x")
    found = samples(metrics)
    # TF Serving's name, without a suffix.
    name = ":tensorflow:serving:request_count"
    assert found[name, frozenset(("m", "OK"))] == 2
    assert found[name, frozenset(("m", "NOT_FOUND"))] == 1
    assert found[name, frozenset(("", "INTERNAL"))] == 1
    latency = ":tensorflow:serving:request_latency_count"
    assert found[latency, frozenset(("m", "Predict", "REST"))] == 3
    assert found["kbert_requests_inside", frozenset(())] == 0


def test_a_request_that_is_cancelled_is_no_fault():
    metrics = Metrics()
    with pytest.raises(asyncio.CancelledError), metrics.request("REST"):
        raise asyncio.CancelledError
    with pytest.raises(asyncio.CancelledError), metrics.request("GRPC") as request:
        request.status = "DEADLINE_EXCEEDED"
        raise asyncio.CancelledError
    name = ":tensorflow:serving:request_count"
    found = {labels: count for (what, labels), count in samples(metrics).items() if what == name}
    assert found == {frozenset(("", "CANCELLED")): 1, frozenset(("", "DEADLINE_EXCEEDED")): 1}


def test_batches():
    metrics = Metrics()
    told = metrics.batches_of("m")
    told(3, 0.002)
    told(1, 0.0)
    found = samples(metrics)
    prefix = ":tensorflow:serving:batching_session:"
    assert found[f"{prefix}input_batch_size_sum", frozenset(("m",))] == 4
    assert found[f"{prefix}queuing_latency_sum", frozenset(("m",))] == pytest.approx(2000.0)
