"""Numbers, and the gate that holds them."""

import time

import pytest

from kbert.local_server.limits import Gate, Limits, Refusal


def test_numbers_must_be_positive():
    for name in ("max_request_bytes", "max_concurrency", "timeout"):
        told = f"`{name}` must be positive and finite. Received: {name}=0"
        with pytest.raises(ValueError, match=told):
            Limits(**{name: 0})
    with pytest.raises(ValueError, match="`timeout` must be positive and finite. .*timeout=inf"):
        Limits(timeout=float("inf"))


def test_the_gate_counts():
    gate = Gate(Limits(max_concurrency=2, timeout=7.0))
    with gate.admitted() as deadline, gate.admitted():
        assert deadline == pytest.approx(time.monotonic() + 7.0, abs=0.5)
        with pytest.raises(Refusal, match="The server is full: it answers 2 requests") as caught:
            with gate.admitted():
                pass
        assert (caught.value.code, caught.value.status) == ("RESOURCE_EXHAUSTED", 503)
        assert gate.inside == 2
    assert gate.inside == 0


def test_a_request_that_fails_gives_its_place_back():
    gate = Gate(Limits(max_concurrency=1))
    for _ in range(3):
        with pytest.raises(KeyError), gate.admitted():
            raise KeyError("x")
    assert gate.inside == 0
