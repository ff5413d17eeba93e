"""The clients of the benchmarks of serving."""

import threading
from collections.abc import Callable
from types import ModuleType

import pytest

Load = Callable[[str], ModuleType]


def test_all_clients_ask(program: Load):
    asked = set()

    def ask(rows: list[str]) -> None:
        asked.add((threading.current_thread().name, *rows))

    found = program("side_by_side.serving_requests").load(ask, ["a", "b"], 2, 0.3)
    assert set(found) == {"requests_per_second", "p50_ms", "p99_ms"}
    assert {row for _, row in asked} == {"a", "b"}


def test_a_client_that_fails_is_not_passed_over(program: Load):
    """Its thread ended, and the figures were those of the others under the number of all."""
    first = threading.Event()

    def ask(rows: list[str]) -> None:
        if not first.is_set():
            first.set()
            raise ConnectionResetError("gone")

    load = program("side_by_side.serving_requests").load
    with pytest.raises(RuntimeError, match=r"1 of 3 clients failed: ConnectionResetError.'gone'"):
        load(ask, ["a"], 3, 30.0)
