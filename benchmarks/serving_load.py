"""Requests a second and waiting times of `kbert serve`, beside the same exports in this process.

    python benchmarks/serving_load.py [--seconds 10] [--tasks classification questions names]

Clients ask one row at a time, each as soon as it has its answer: over REST, and in process with as
many threads. Then, for each task: what the server adds to the model's own time for a request of
eight rows (the two take turns), how much more 64 clients get answered than one, and how long the
first request after loading takes beside the median, of five starts. Beside them, over REST too, the
same weights (not the translator's) in ONNX Runtime behind the server that `kbert serve` is made of,
and in transformers on PyTorch behind FastAPI. The clients share the cores with the server.
"""

import argparse
import itertools
import statistics
import tempfile
from pathlib import Path
from typing import Any

from side_by_side.results import parser, write
from side_by_side.serving_models import TASKS, Rows, columns, written
from side_by_side.serving_peers import CLIENTS, PEERS, beside
from side_by_side.serving_process import serving
from side_by_side.serving_requests import RATE, Ask, load, over_rest, timed

from kbert.serving.loading.exported import LoadedModel

BATCH, PAIRS, STARTS = 8, 120, 5
OPTIONS = ("--max-concurrency", "256")


def overhead(server: Ask, model: Ask, rows: Rows) -> float:
    """What the server adds to a request of eight rows, in percent: the median over pairs."""
    batches = [list(itertools.islice(itertools.cycle(rows), i, i + BATCH)) for i in range(PAIRS)]
    pairs = [(timed(model, batch), timed(server, batch)) for batch in batches]
    own = statistics.median(own for own, _ in pairs)
    return 100 * statistics.median(all_ - mine for mine, all_ in pairs) / own


def first_times_median(base: Path, task: str, rows: Rows) -> dict[str, float]:
    """The first request after each of some starts, beside the median of 40: median and worst."""
    found = []
    for _ in range(STARTS):
        with serving(base, *OPTIONS) as process:
            ask = over_rest(process.rest, task)
            first, *others = [timed(ask, [rows[0]]) for _ in range(40)]
            found.append(first / statistics.median(others))
    of = {"first_times_median": statistics.median(found), "first_times_median_at_worst": max(found)}
    return {name: round(times, 2) for name, times in of.items()}


def measured(
    task: str, folder: Path, arguments: argparse.Namespace
) -> tuple[dict[tuple[str, int], dict[str, float]], dict[str, float]]:
    """The load by way and clients, and the figures."""
    base = folder / "exports"
    rows = written(task, base, arguments.translator)
    loaded = LoadedModel(base / task / "1")

    def model(rows: Rows) -> Any:
        return loaded.run("serving_default", columns(rows))

    for one in rows[:20]:
        model([one])
    found, firsts = {}, first_times_median(base, task, rows)
    with serving(base, *OPTIONS) as process:
        server = over_rest(process.rest, task)
        for one in rows[:20]:
            server([one])
        figures = {f"added_at_{BATCH}_rows_percent": round(overhead(server, model, rows), 1)}
        for way, ask in (("REST", server), ("in process", model)):
            for clients in CLIENTS:
                found[way, clients] = load(ask, rows, clients, arguments.seconds)
    alone, many = (found["REST", clients][RATE] for clients in (CLIENTS[0], CLIENTS[-1]))
    figures[f"clients_{CLIENTS[-1]}_times_1"] = round(many / alone, 2)
    figures |= firsts
    for way in () if task == "translation" else PEERS:
        of_peer = beside(way, task, folder, arguments.peer_python, rows, arguments.seconds)
        for clients, one in of_peer.items():
            found[way, clients] = one
            name = f"times_{way.lower().replace(' ', '_')}_at_{clients}"
            figures[name] = round(found["REST", clients][RATE] / one[RATE], 2)
    return found, figures


def main() -> None:
    """Asks all tasks, one after the other; writes after each."""
    made = parser("serving_load", __doc__)
    made.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    made.add_argument("--seconds", type=float, default=10.0, help="of each number of clients")
    made.add_argument("--translator", type=Path, help="a translator's folder; random if absent")
    arguments = made.parse_args()
    tables: dict[str, list[dict[str, Any]]] = {"load": [], "figures": []}
    for task in arguments.tasks:
        with tempfile.TemporaryDirectory() as name:
            found, figures = measured(task, Path(name), arguments)
        for (way, clients), each in found.items():
            rounded = {key: round(value, 1) for key, value in each.items()}
            tables["load"].append({"task": task, "way": way, "clients": clients, **rounded})
        tables["figures"].append({"task": task, **figures})
        write(arguments.output, tables, [], {"seconds": arguments.seconds})


if __name__ == "__main__":
    main()
