"""Requests of random ranks, rows, types and sizes beside good ones, to each signature of each task.

    PYTHONPATH=. python benchmarks/serving_fuzz.py [--count 100000] [--only Classifier ...]

Exports of tiny encoders in TensorFlow's C++ session, which TF Serving runs too, in this process: no
client checks what is fed. Eight threads ask; half of the requests are good ones, whose answers are
known. No good one may be lost or wrong; a bad one is refused as INVALID_ARGUMENT, or answered where
it happens to fit. First the good ones are asked alone by as many threads: the share of requests
that take more than twice the median, with and without bad ones. Signatures that are in the results
with the same count are not asked again. An hour for a signature stops it.
"""

import argparse
import faulthandler
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import tensorflow as tf
from hostile_strings import MODELS as READERS
from side_by_side.fuzzed_requests import bad, good, is_same
from side_by_side.results import keep_row

from kbert.serving.export.export import export
from kbert.serving.format.signatures import read_meta_graph, signatures_of
from tests.serving.fed_sessions import Ask, fed_session
from tests.small_pipelines import small_embedder, small_multi_label_classifier

RESULTS = Path(__file__).parent / "results" / "serving_fuzz.json"
KEY = ("model", "signature", "requests")
MODELS = {
    **READERS,
    "TextEmbedder": small_embedder,
    "MultiLabelClassifier": small_multi_label_classifier,
}
THREADS, GOOD, SECONDS = 8, 40, 3600
KINDS = ("good", "lost", "wrong", "refused", "answered", "faults")


def asked(ask: Ask, signature: Any, count: int, share_bad: float) -> dict[str, Any]:
    """Asks so many requests; what came of them, and the share of slow good ones, in percent."""
    draw = random.Random(1)
    known = [(one, ask(**one)) for one in (good(draw, signature) for _ in range(GOOD))]
    times: list[float] = []
    turns = itertools.count()

    def work(number: int) -> Counter[str]:
        draw, counts = random.Random(number), Counter[str]()
        while next(turns) < count:
            is_bad = draw.random() < share_bad
            inputs, expected = (bad(draw, signature), {}) if is_bad else draw.choice(known)
            start = time.perf_counter()
            try:
                found = ask(**inputs)
                times.extend([] if is_bad else [time.perf_counter() - start])
                same = all(is_same(found[name], one) for name, one in expected.items())
                kind = "answered" if is_bad else "good" if same else "wrong"
            except tf.errors.InvalidArgumentError:
                kind = "refused" if is_bad else "lost"
            except Exception as error:
                kind = "faults" if is_bad else "lost"
                print(f"{type(error).__name__}: {error}"[:400], file=sys.stderr, flush=True)
            counts[kind] += 1
        return counts

    with ThreadPoolExecutor(THREADS) as threads:
        counts = sum(threads.map(work, range(THREADS)), Counter())
    median = statistics.median(times)
    slow = 100 * sum(one > 2 * median for one in times) / len(times)
    figures = {"median_ms": round(1e3 * median, 2), "slow_percent": round(slow, 2)}
    return {**{kind: counts[kind] for kind in KINDS}, **figures}


def main() -> None:
    """Asks all signatures that are not in the results yet, and judges."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if arguments.results.is_file():
        rows = json.loads(arguments.results.read_text())
    done = {tuple(one[key] for key in KEY) for one in rows}
    for model in arguments.only:
        with tempfile.TemporaryDirectory() as base:
            path = export(MODELS[model](), base, "tiny")
            for name, signature in signatures_of(read_meta_graph(path)).items():
                if (model, name, arguments.count) in done:
                    continue
                faulthandler.dump_traceback_later(SECONDS, exit=True)
                ask = fed_session(path)(name)
                alone = asked(ask, signature, max(400, arguments.count // 20), 0.0)
                found = asked(ask, signature, arguments.count, 0.5)
                beside = {f"alone_{k}": alone[k] for k in ("median_ms", "slow_percent")}
                row = {"model": model, "signature": name, "requests": arguments.count}
                rows.append({**row, **found, **beside})
                keep_row(arguments.results, rows[-1], KEY)
    faulthandler.cancel_dump_traceback_later()
    sys.exit(any(one["lost"] + one["wrong"] + one["faults"] for one in rows))


if __name__ == "__main__":
    main()
