"""Requests a second and waiting times of `kbert serve`, beside the same exports in this process.

    python benchmarks/serving_load.py [--seconds 10] [--tasks classification questions names]

Clients ask one row at a time, each as soon as it has its answer: over REST, and in process with as
many threads. Then three figures for each task: what the server adds to the model's own time for a
request of eight rows (the two take turns), how much more 64 clients get answered than one, and how
long the first request after loading takes beside the median. Clients share the cores with the
server: the figures of many clients are lower bounds.
"""

import itertools
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import requests
from side_by_side.results import parser, write
from side_by_side.serving_models import TASKS, Rows, columns, written
from side_by_side.serving_process import serving

from kbert.serving.loaded_model import LoadedModel

CLIENTS = (1, 8, 64)
BATCH, PAIRS = 8, 40
Ask = Callable[[Rows], Any]


def over_rest(url: str, task: str) -> Ask:
    """Asks the server; each thread keeps a connection."""
    kept = threading.local()

    def ask(rows: Rows) -> Any:
        if not hasattr(kept, "session"):
            kept.session = requests.Session()
        address = f"{url}/v1/models/{task}:predict"
        answer = kept.session.post(address, json={"inputs": dict(columns(rows))}, timeout=120)
        answer.raise_for_status()
        return answer.json()

    return ask


def timed(ask: Ask, rows: Rows) -> float:
    """Milliseconds of one request."""
    start = time.perf_counter()
    ask(rows)
    return 1e3 * (time.perf_counter() - start)


def load(ask: Ask, rows: Rows, clients: int, seconds: float) -> dict[str, float]:
    """Lets clients ask for a while."""
    times: list[float] = []
    turn = itertools.count()
    end = time.perf_counter() + seconds

    def client() -> None:
        while time.perf_counter() < end:
            times.append(timed(ask, [rows[next(turn) % len(rows)]]))

    start = time.perf_counter()
    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    cuts = statistics.quantiles(times, n=100) if len(times) > 1 else times * 99
    per_second = len(times) / (time.perf_counter() - start)
    return {"requests_per_second": per_second, "p50_ms": cuts[49], "p99_ms": cuts[98]}


def overhead(server: Ask, model: Ask, rows: Rows) -> float:
    """What the server adds to a request of eight rows, in percent: the median over pairs."""
    batches = [list(itertools.islice(itertools.cycle(rows), i, i + BATCH)) for i in range(PAIRS)]
    pairs = [(timed(model, batch), timed(server, batch)) for batch in batches]
    own = statistics.median(own for own, _ in pairs)
    return 100 * statistics.median(all_ - mine for mine, all_ in pairs) / own


def main() -> None:
    """Asks all tasks, one after the other."""
    made = parser("serving_load", __doc__)
    made.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    made.add_argument("--seconds", type=float, default=10.0, help="of each number of clients")
    made.add_argument("--translator", type=Path, help="a translator's folder; random if absent")
    arguments = made.parse_args()
    tables: dict[str, list[dict[str, Any]]] = {"load": [], "figures": []}
    for task in arguments.tasks:
        with tempfile.TemporaryDirectory() as name:
            base = Path(name, "exports")
            rows = written(task, base, arguments.translator)
            loaded = LoadedModel(base / task / "1")
            model = lambda rows: loaded.run("serving_default", columns(rows))  # noqa: E731
            for one in rows[:20]:
                model([one])
            with serving(base, "--max-concurrency", "256") as process:
                server = over_rest(process.rest, task)
                first, *others = [timed(server, [rows[0]]) for _ in range(40)]
                added = overhead(server, model, rows)
                found = {}
                for way, ask in (("REST", server), ("in process", model)):
                    for clients in CLIENTS:
                        figures = load(ask, rows, clients, arguments.seconds)
                        found[way, clients] = figures["requests_per_second"]
                        rounded = {key: round(value, 1) for key, value in figures.items()}
                        row = {"task": task, "way": way, "clients": clients, **rounded}
                        tables["load"].append(row)
        gain = found["REST", CLIENTS[-1]] / found["REST", 1]
        times = {"first_times_median": round(first / statistics.median(others), 2)}
        row = {"task": task, f"added_at_{BATCH}_rows_percent": round(added, 1)}
        tables["figures"].append({**row, "clients_64_times_1": round(gain, 2), **times})
    write(arguments.output, tables, [], {"seconds": arguments.seconds})


if __name__ == "__main__":
    main()
