"""When a request is asked again, on a clock of the test's own."""

import pytest

from kbert.serving.client import server_errors as retries
from kbert.serving.client.server_errors import DeadlineExceeded, Retries, server_error


class Clock:
    def __init__(self) -> None:
        self.now = 100.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(retries, "time", clock)
    monkeypatch.setattr(retries.random, "uniform", lambda low, high: high)
    return clock


def failing(times: int, code: str = "UNAVAILABLE"):
    left = [times]

    def ask(seconds: float) -> float:
        if left[0]:
            left[0] -= 1
            raise server_error(code, "busy", "server")
        return seconds

    return ask


def test_pauses_double_up_to_the_longest(clock: Clock):
    asked = Retries(most=5, pause=1.0, longest_pause=3.0)
    # What is left of 50 seconds after pauses of 1, 2, 3, 3.
    assert asked.run(failing(4), 150.0, "server") == 41.0
    assert clock.pauses == [1.0, 2.0, 3.0, 3.0]


def test_many_repetitions(clock: Clock):
    asked = Retries(most=5000, pause=0.5, longest_pause=0.5)
    assert asked.run(failing(1500), 1000.0, "server") == 150.0


def test_the_last_error_is_told(clock: Clock):
    with pytest.raises(RuntimeError, match="server answered UNAVAILABLE: busy"):
        Retries(most=2, pause=1.0).run(failing(9), 150.0, "server")
    assert clock.pauses == [1.0, 2.0]


def test_no_pause_leads_past_the_deadline(clock: Clock):
    with pytest.raises(RuntimeError, match="busy"):
        Retries(most=9, pause=1.0).run(failing(9), 104.0, "server")
    assert clock.pauses == [1.0, 2.0]


def test_no_time_at_all(clock: Clock):
    with pytest.raises(DeadlineExceeded, match="no time was left to ask"):
        Retries().run(failing(0), 100.0, "server")


def test_what_does_not_pass_is_told_at_once(clock: Clock):
    for code in ("INVALID_ARGUMENT", "NOT_FOUND", "INTERNAL", "DEADLINE_EXCEEDED"):
        with pytest.raises(RuntimeError, match=code):
            Retries().run(failing(1, code), 150.0, "server")
    assert clock.pauses == []


def test_pauses_are_by_chance(monkeypatch: pytest.MonkeyPatch):
    clock = Clock()
    monkeypatch.setattr(retries, "time", clock)
    Retries(most=9, pause=1.0, longest_pause=1.0).run(failing(9), 150.0, "server")
    assert all(0.5 <= pause <= 1.0 for pause in clock.pauses) and len(set(clock.pauses)) == 9


def test_numbers_must_not_be_negative():
    with pytest.raises(ValueError, match="`pause` must not be negative. Received: pause=-1"):
        Retries(pause=-1)
