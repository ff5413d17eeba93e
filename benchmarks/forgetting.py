"""Measures what SICK's score is after the same encoder has learned CoLA, in three ways.

    python benchmarks/forgetting.py GLUE_DIRECTORY RUNS [--seeds 3]

Fine-tuned on SICK, then on CoLA, the encoder serves SICK's head no longer as before; adapters leave
it as it is, and so does a run on both at once. Runs are those of transfer.py in the same folder, or
are trained. Accuracy is that of SICK's test set, Matthews' correlation that of CoLA's dev set.
"""

import argparse
from pathlib import Path
from typing import Any

from side_by_side.results import keep_row
from side_by_side.transfer_data import written
from side_by_side.transfer_rows import ROWS, Row
from transfer import run_folder, trained

import kbert
from kbert.tasks.registry import task_of

RESULTS = Path(__file__).parent / "results" / "forgetting.json"
KEY = ("way", "seed")
FIRST, SECOND = "sick", "cola"
METRICS = {FIRST: "accuracy", SECOND: "matthews"}


def score(model: Any, task: str, arguments: argparse.Namespace) -> float:
    """The score of a model on the test examples of its task."""
    file = written(task, "test", arguments.glue, arguments.runs / "data")
    kind: Any = task_of(model)
    examples = kind.measured_examples(file, {}, model)
    return round(kind.measure(model, examples)[0][METRICS[task]], 4)


def after_another_task(seed: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Fine-tuning on the second task of the encoder that was fine-tuned on the first."""
    row = ROWS["fine-tuning"]
    before = run_folder(arguments.runs, FIRST, "fine-tuning", seed)
    trained(row, FIRST, seed, before, arguments)
    later = arguments.runs / f"{SECOND}-after-{FIRST}-{seed}"
    trained(Row(row.options, encoder=str(before)), SECOND, seed, later, arguments)
    model, other = kbert.load(before / "model"), kbert.load(later / "model")
    found = {"first_before": score(model, FIRST, arguments)}
    for variable, new in zip(model.encoder.weights, other.encoder.weights, strict=True):
        variable.assign(new)
    found["first_after"] = score(model, FIRST, arguments)
    return found | {"second": score(other, SECOND, arguments)}


def with_adapters(seed: int, arguments: argparse.Namespace) -> dict[str, float]:
    """An adapter for each task in the same encoder."""
    runs = {}
    for task in (FIRST, SECOND):
        runs[task] = run_folder(arguments.runs, task, "Pfeiffer adapter", seed)
        trained(ROWS["Pfeiffer adapter"], task, seed, runs[task], arguments)
    model = kbert.load(runs[FIRST] / "model")
    found = {"first_before": score(model, FIRST, arguments)}
    model.encoder.load_adapter(runs[SECOND], SECOND)
    found["first_after"] = score(model, FIRST, arguments)
    return found | {"second": score(kbert.load(runs[SECOND] / "model"), SECOND, arguments)}


def together(seed: int, arguments: argparse.Namespace) -> dict[str, float]:
    """Both tasks at once."""
    run = arguments.runs / f"{FIRST}-and-{SECOND}-{seed}"
    row = Row({**ROWS["fine-tuning"].options, "sampling": "square-root"}, beside=(SECOND,))
    trained(row, FIRST, seed, run, arguments)
    models = {task: kbert.load(run / "model" / task) for task in (FIRST, SECOND)}
    return {
        "first_after": score(models[FIRST], FIRST, arguments),
        "second": score(models[SECOND], SECOND, arguments),
    }


WAYS = {
    "fine-tuning, one after the other": after_another_task,
    "an adapter each": with_adapters,
    "multi-task": together,
}


def main() -> None:
    """Trains and measures; each result is written at once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("glue", type=Path, help="folder with SICK/ and CoLA/")
    parser.add_argument("runs", type=Path, help="folder of the runs")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    for seed in range(1, arguments.seeds + 1):
        for way, measure in WAYS.items():
            row = {"way": way, "first": FIRST, "second": SECOND, "seed": seed}
            keep_row(arguments.output, row | measure(seed, arguments), KEY)


if __name__ == "__main__":
    main()
