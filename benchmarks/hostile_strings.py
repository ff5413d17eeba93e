"""100,000 hostile strings for each signature of each task, against exports of tiny encoders.

    PYTHONPATH=. python benchmarks/hostile_strings.py [--count 100000] [--only Classifier ...]

Random bytes, broken UTF-8, NUL, deep combining marks, emoji, right-to-left and control characters,
special tokens that somebody typed, twenty strings of 1 MB: `tests/serving/hostile_strings.py`, with
what must hold of each answer. In batches of 1 to 32 rows, as many as a server joins, of about 2 MB
at most. Ten minutes or 8 GB for a batch are too much. Token ids are no strings. Other rows stay.
"""

import argparse
import faulthandler
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from side_by_side.results import keep_row

from kbert.serving.export.export import export
from kbert.serving.loading.exported import Exported, load_export
from tests import small_pipelines as small
from tests.serving.hostile_strings import faults, hostile_strings
from tests.small_translator import small_translator

RESULTS = Path(__file__).parent / "results" / "hostile_strings.json"
KEY = ("model", "signature")
MODELS = {
    "Classifier": small.small_classifier,
    "Classifier of pairs": lambda: small.small_classifier(pair=True),
    "Regressor": small.small_regressor,
    "MultipleChoice": small.small_multiple_choice,
    "QuestionAnswerer": small.small_question_answerer,
    "SpanTagger": small.small_span_tagger,
    "EntityRecognizer": small.small_entity_recognizer,
    "MaskedLanguageModel": small.small_masked_language_model,
    "Translator": small_translator,
    "Translator with BERT": lambda: small_translator(fused=True),
    "Translator in int8": lambda: small_translator(hidden_dim=64),  # wide enough for integers
}
BATCH_BYTES = 2_000_000
SECONDS, SEED = 600, 1


def batches(count: int, seed: int, width: int) -> Iterator[list[list[bytes]]]:
    """Rows of `width` strings, some at a time."""
    draw = random.Random(seed)
    columns = [hostile_strings(count, seed + i, large=20) for i in range(width)]
    batch: list[list[bytes]] = []
    wanted = size = 0
    for row in zip(*columns):
        batch.append(list(row))
        size += sum(map(len, row))
        wanted = wanted or draw.choice([1, 2, 7, 32])
        if len(batch) >= wanted or size > BATCH_BYTES:
            yield batch
            batch, wanted, size = [], 0, 0
    if batch:
        yield batch


def inputs_of(found: Exported, signature: str, rows: list[list[bytes]]) -> dict[str, Any]:
    """A batch as the signature wants it."""
    names = found.input_names(signature)
    if names == ["context", "choices"]:
        return {"context": [row[0] for row in rows], "choices": [row[1:] for row in rows]}
    return {name: [row[i] for row in rows] for i, name in enumerate(names)}


def asked(found: Exported, signature: str, count: int, seed: int) -> dict[str, Any]:
    """All strings to one signature."""
    width = 1 + len(names) if "choices" in (names := found.input_names(signature)) else len(names)
    told: list[str] = []
    start, slowest, rows = time.monotonic(), 0.0, 0
    for number, batch in enumerate(batches(count, seed, width)):
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        inputs, began = inputs_of(found, signature, batch), time.monotonic()
        try:
            answers = found.run(inputs, signature)
            slowest, rows = max(slowest, time.monotonic() - began), rows + len(batch)
            told += list(faults(inputs, answers))
        except Exception as error:
            told.append(f"batch {number}: {type(error).__name__}: {str(error)[:300]}")
    faulthandler.cancel_dump_traceback_later()
    sys.stdout.writelines(f"    {one}\n" for one in told[:20])
    return {
        "signature": signature,
        "rows": rows,
        "faults": len(told),
        "seconds": round(time.monotonic() - start),
        "slowest_batch_s": round(slowest, 1),
    }


def main() -> None:
    """Asks all signatures, and writes what came of it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=list(MODELS))
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    total = 0
    for model in arguments.only:
        with tempfile.TemporaryDirectory() as base:
            given = {"max_batch_size": 2, "precision": "int8" if "int8" in model else None}
            found = load_export(export(MODELS[model](), base, "tiny", **given))
            for name in (one for one in found.metadata["signatures"] if one != "tokens"):
                row = {"model": model, **asked(found, name, arguments.count, SEED)}
                keep_row(arguments.results, row, KEY)
                total += row["faults"]
    sys.exit(total > 0)


if __name__ == "__main__":
    main()
