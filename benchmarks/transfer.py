"""Learns RTE, SICK and CoLA from one encoder in several ways, and writes the scores of 5 seeds.

    python benchmarks/transfer.py GLUE_DIRECTORY RUNS [--rows "fine-tuning" LoRA] [--tasks rte]

Each row is a command of `kbert train` with its options in side_by_side/transfer_rows.py. A finished
run is not trained again, and a stopped one goes on. Accuracy is that of RTE's dev set and of SICK's
test set, Matthews' correlation that of CoLA's dev set, always of the weights of the last epoch:
none of these examples chooses anything.
"""

import argparse
import json
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

from side_by_side.results import keep_row, seeds
from side_by_side.transfer_data import written
from side_by_side.transfer_rows import ROWS, STAGES, Row

from kbert.options.kinds import config_text

RESULTS = Path(__file__).parent / "results" / "transfer.json"
KEY = ("row", "task", "seed")
METRICS = {"cola": "matthews"}
LENGTH = 256


def run_folder(runs: Path, task: str, row: str, seed: int) -> Path:
    """The folder of the run of a row."""
    return runs / f"{task}-{row.replace(',', '').replace(' ', '-').lower()}-{seed}"


def trained(row: Row, task: str, seed: int, run: Path, arguments: argparse.Namespace) -> None:
    """Trains once by the command line, if that is not done."""
    if run.exists():
        return
    data = arguments.runs / "data"
    files = {part: str(written(task, part, arguments.glue, data)) for part in ("train", "test")}
    own = {"max_sequence_length": LENGTH, **files}
    given = {name: value.format(runs=arguments.runs) for name, value in row.options.items()}
    given |= {"encoder": row.encoder.format(runs=arguments.runs), "seed": str(seed)}
    given |= {"output": str(run)}
    kind = "multi-task" if row.beside else "classification"
    if row.beside:
        others = {name: str(written(name, "train", arguments.glue, data)) for name in row.beside}
        tasks = {n: {"max_sequence_length": LENGTH, "train": file} for n, file in others.items()}
        given["config"] = str(data / f"{task}-and-others.yaml")
        Path(given["config"]).write_text(config_text({"tasks": {task: own, **tasks}}))
    else:
        given |= {name.replace("_", "-"): str(value) for name, value in own.items()}
    options = [word for name, value in given.items() for word in (f"--{name}", value)]
    print(f"kbert train {kind} {' '.join(options)}", flush=True)
    command = [sys.executable, "-m", "kbert.cli.main", "train", kind, *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def measured(run: Path, task: str) -> dict[str, Any]:
    """The score of a run, and how many weights it trained."""
    metrics = json.loads((run / "metrics.json").read_text())
    report = json.loads((run / "report.json").read_text())
    test, metric = metrics["final"]["test"], METRICS.get(task, "accuracy")
    score = test.get(f"{task}_{metric}", test.get(metric))
    return {"score": round(score, 4), "trained_weights": report["parameters"]}


def main() -> None:
    """Trains stages and rows; each result is written at once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("glue", type=Path, help="folder with RTE/, SICK/, CoLA/, MNLI-subset/, ...")
    parser.add_argument("runs", type=Path, help="folder of the runs")
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    parser.add_argument("--tasks", nargs="+", default=["rte", "sick", "cola"])
    parser.add_argument("--seeds", type=seeds, default=seeds("5"), help="such as 5, or 4-5")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    for seed, name in product(arguments.seeds, arguments.rows):
        row = ROWS[name]
        for stage in row.needs:
            one = STAGES[stage]
            trained(one, one.targets[0], 1, arguments.runs / stage, arguments)
        for task in (task for task in row.targets if task in arguments.tasks):
            run = run_folder(arguments.runs, task, name, seed)
            trained(row, task, seed, run, arguments)
            found = {"row": name, "task": task, "seed": seed, **measured(run, task)}
            keep_row(arguments.output, found, KEY)


if __name__ == "__main__":
    main()
