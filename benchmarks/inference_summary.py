"""kbert's inference beside the fastest other program, from the results of four benchmarks.

    python benchmarks/inference_summary.py

Of exported_tasks.py, translation_speed.py (int8, both sizes) and first_answer.py: a row for each
kind of work, with kbert's fastest way in that precision and the fastest other program. `times` is
kbert's time divided by the other's, `aim` the most that it should be. Of exported_tasks.py it is
that of its own table, the median of the rounds' ratios; else the ratio of the numbers that stand
beside it.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from side_by_side.contender import SCRIPTS
from side_by_side.results import table

from kbert.storage.files import write_atomically

RESULTS = SCRIPTS / "results"
# Work of exported_tasks.py -> its name here, and the aim in float32 and in int8, if there is one.
TASKS = {
    "class": ("class of a sentence", 1.2, 1.3),
    "answer": ("answer to a question", 1.0, None),
    "entities": ("entities of a post", 1.0, None),
    "classes of batches": ("classes of 32 sentences", 1 / 1.15, 1 / 0.9),
}
# Size -> the aim for one sentence in float32.
SENTENCES = {"tiny": 2.5, "base": 1.5}
SHORT = ", shortlist"
MANY, ONE, RATIO = "tokens_per_second", "milliseconds_a_sentence", "times_onnx_runtime"


def rows_of(name: str) -> list[dict[str, Any]]:
    """The rows of a result."""
    found: list[dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    return found


def row(work: str, unit: str, aim: float | None, own: Any, other: Any) -> dict[str, Any]:
    """A row, of contenders' rows with milliseconds or tokens a second."""
    name, number, fastest, peer = (one[key] for one in (own, other) for key in ("contender", unit))
    times = own.get(RATIO) or (peer / number if unit == MANY else number / peer)
    shown = {"work": work, "kbert": name, "by": number, "other": fastest, "other by": peer}
    reached = "" if aim is None else "yes" if times <= aim else "no"
    return {**shown, "times": round(times, 2), "aim": aim and round(aim, 2), "reached": reached}


def best(rows: list[dict[str, Any]], unit: str, ours: bool, precision: str) -> dict[str, Any]:
    """The row of the fastest contender of a precision, kbert's own or another.

    kbert's have a shortlist where the precision says so.
    """
    chosen = [r for r in rows if r["contender"].startswith("kbert") == ours]
    chosen = [r for r in chosen if ("int8" in r["contender"]) == precision.startswith("int8")]
    if ours:
        chosen = [r for r in chosen if r["contender"].endswith(SHORT) == precision.endswith(SHORT)]
    chosen = [r for r in chosen if "bfloat16" not in r["contender"]]
    pick = max if unit == MANY else min
    return pick(chosen, key=lambda r: float(r[unit]))


def summary() -> list[dict[str, Any]]:
    """All rows."""
    rows = []
    tasks = rows_of("exported_tasks")
    for precision in ("float32", "int8"):
        for key, (work, *aims) in TASKS.items():
            of = [r for r in tasks if r["work"] == key]
            pair = [best(of, "ms_a_text", ours, precision) for ours in (True, False)]
            aim = aims[precision == "int8"]
            rows.append(row(f"{work}, {precision}, ms a text", "ms_a_text", aim, *pair))
    for size, limit in SENTENCES.items():
        of = rows_of(f"translation_int8_{size}")
        for unit, precision, aim in (
            (ONE, "float32", limit),
            (ONE, f"float32{SHORT}", None),
            (ONE, "int8", None),
            (MANY, "float32", None),
            (MANY, f"float32{SHORT}", None),
            (MANY, "int8", 1 / 0.8),
        ):
            what = "ms a sentence" if unit == ONE else "tokens a second, 256 sentences"
            pair = [best(of, unit, ours, precision) for ours in (True, False)]
            rows.append(row(f"translation, {size}, {precision}, {what}", unit, aim, *pair))
    new = {r["process"]: r for r in rows_of("first_answer")}
    own, allowed = new["kbert, an export"], new["import tensorflow"]["whole"] + 3
    for work, ours, other, theirs in (
        ("first answer of a new process, s", own["whole"], "import tensorflow and 3 s", allowed),
        ("load of an export, s", own["load"], "transformers", new["transformers"]["load"]),
    ):
        pair = [{"contender": "kbert, an export", "s": ours}, {"contender": other, "s": theirs}]
        rows.append(row(work, "s", 1.0, *pair))
    return rows


def main() -> None:
    """Prints and writes the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=RESULTS / "inference_summary.json")
    rows = summary()
    print(table(rows))
    write_atomically(parser.parse_args().output, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
