"""`kbert serve` under twice what it can answer, while its model is replaced again and again.

    python benchmarks/serving_soak.py [--minutes 30]

A classifier with two sets of weights, which take turns as new versions; old versions are removed.
Requests come over REST and gRPC at twice the rate that was answered before. Every answer must be,
whole, that of one of the two; every other request must be refused in order (UNAVAILABLE,
RESOURCE_EXHAUSTED, DEADLINE_EXCEEDED); the memory must not grow. The exit code is 1 otherwise.
"""

import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
from side_by_side.results import parser, write
from side_by_side.serving_models import sentences
from side_by_side.serving_process import ServingProcess, serving
from side_by_side.serving_traffic import Traffic

from kbert.serving.export.export import export
from kbert.serving.loading.exported import LoadedModel
from kbert.tasks.classification.model import Classifier

MODEL = "classifier"
THREADS, PLACES, WARM_SECONDS = 48, 16, 10.0
GROWTH = 1.05  # the most memory in the last third of the time, beside that in the second


def two_exports(folder: Path) -> list[Path]:
    """The version folders of two sets of weights."""
    paths = []
    for seed in (1, 2):
        keras.utils.set_random_seed(seed)
        model = Classifier.from_pretrained("all-MiniLM-L6-v2", ["no", "yes", "perhaps"])
        kernel = model.sequence_head.classifier.kernel
        kernel.assign(keras.random.normal(kernel.shape, seed=seed))
        paths.append(export(model, folder / str(seed), MODEL, max_batch_size=16))
    return paths


@contextmanager
def replacing(base: Path, sources: list[Path], pause: float) -> Iterator[list[int]]:
    """Replaces the model every so many seconds while the block runs; the versions that came."""
    done, versions = threading.Event(), [1]

    def work() -> None:
        while not done.wait(pause):
            number = versions[-1] + 1
            partial = base / f"partial-{number}"
            shutil.copytree(sources[number % 2], partial)
            partial.rename(base / MODEL / str(number))
            versions.append(number)
            for old in versions[:-2]:
                shutil.rmtree(base / MODEL / str(old), ignore_errors=True)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield versions
    finally:
        done.set()
        thread.join()


@contextmanager
def watching(process: ServingProcess) -> Iterator[list[float]]:
    """The memory, in MiB, twice a second while the block runs."""
    done, found = threading.Event(), [process.memory_mib()]

    def work() -> None:
        while not done.wait(0.5):
            found.append(process.memory_mib())

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def main() -> None:
    """Soaks the server, and judges."""
    made = parser("serving_soak", __doc__)
    made.add_argument("--minutes", type=float, default=30.0, help="how long")
    made.add_argument("--reload-seconds", type=float, default=30.0, help="between two versions")
    arguments = made.parse_args()
    with tempfile.TemporaryDirectory() as name:
        sources = two_exports(Path(name, "sources"))
        base = Path(name, "exports")
        shutil.copytree(sources[1], base / MODEL / "1")
        texts = sentences()
        expected = [LoadedModel(p).run("serving_default", {"text": texts}) for p in sources]
        with serving(base, "--max-concurrency", str(PLACES), "--timeout", "10") as process:
            traffic = Traffic([process.rest, process.grpc], MODEL, texts, expected)
            capacity = traffic.run(WARM_SECONDS, PLACES)
            traffic.counts.clear()
            with watching(process) as memory:
                with replacing(base, sources, arguments.reload_seconds) as versions:
                    rate = traffic.run(60 * arguments.minutes, THREADS, 2 * capacity)
    third = len(memory) // 3
    peaks = [round(max(memory[i * third : (i + 1) * third]), 1) for i in range(3)]
    row: dict[str, Any] = {"minutes": arguments.minutes, "versions": len(versions)}
    row |= {"capacity_per_second": round(capacity, 1), "answered_per_second": round(rate, 1)}
    row |= dict(sorted(traffic.counts.items())) | {"memory_mib_by_third": peaks}
    write(arguments.output, {"rows": [row]}, [], {"threads": THREADS, "places": PLACES})
    bad = sum(count for kind, count in traffic.counts.items() if kind.startswith(("lost", "wrong")))
    if bad or peaks[2] > GROWTH * peaks[1]:
        raise SystemExit(f"lost or wrong: {bad}, {traffic.wrong[:5]}; memory: {peaks} MiB")


if __name__ == "__main__":
    main()
