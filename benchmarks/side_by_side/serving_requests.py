"""Clients that ask a server, or a function, one request after the other."""

import http
import http.client
import itertools
import json
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from side_by_side.serving_models import Rows, columns

RATE = "requests_per_second"
Ask = Callable[[Rows], Any]


def over_rest(url: str, task: str) -> Ask:
    """Asks the server; each thread keeps a connection.

    With Python's own client: what a larger one adds, a millisecond, is not the server's.
    """
    kept = threading.local()
    server = urlsplit(url).netloc

    def ask(rows: Rows) -> Any:
        if not hasattr(kept, "connection"):
            kept.connection = http.client.HTTPConnection(server, timeout=120)
        body = json.dumps({"inputs": dict(columns(rows))})
        headers = {"content-type": "application/json"}
        kept.connection.request("POST", f"/v1/models/{task}:predict", body, headers)
        answer = kept.connection.getresponse()
        content = json.loads(answer.read())
        if answer.status != http.HTTPStatus.OK:
            raise RuntimeError(f"{url}: {answer.status}: {content}")
        return content

    return ask


def timed(ask: Ask, rows: Rows) -> float:
    """Milliseconds of one request."""
    start = time.perf_counter()
    ask(rows)
    return 1e3 * (time.perf_counter() - start)


def load(ask: Ask, rows: Rows, clients: int, seconds: float) -> dict[str, float]:
    """Lets clients ask for a while.

    Raises:
        RuntimeError: a request failed. Fewer clients would be called as many.
    """
    times: list[float] = []
    errors: list[Exception] = []
    turn = itertools.count()
    end = time.perf_counter() + seconds

    def client() -> None:
        try:
            while time.perf_counter() < end and not errors:
                times.append(timed(ask, [rows[next(turn) % len(rows)]]))
        except Exception as error:
            errors.append(error)

    start = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        message = f"{len(errors)} of {clients} clients failed: {errors[0]!r}"
        raise RuntimeError(message) from errors[0]
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else times * 99
    per_second = len(times) / (time.perf_counter() - start)
    return {RATE: per_second, "p50_ms": cuts[49], "p99_ms": cuts[98]}
