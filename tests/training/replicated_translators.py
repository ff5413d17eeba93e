"""Runs of translators that are no Transformers, on one device and on a CPU that is two.

    python -m tests.training.replicated_translators FOLDER

prints a JSON object: for each architecture the losses of both runs.
"""

import json
import sys
from pathlib import Path

from tests.replica_process import two_devices


def main() -> None:
    """Trains each architecture twice, for three epochs."""
    two_devices()
    from kbert.training.run import train
    from kbert.training.runs.run_directory import load_run
    from tests.training.tiny_translations import ARCHITECTURES, TinyPairs

    folder = Path(sys.argv[1])
    pairs = TinyPairs(folder)
    common = {"epochs": 3, "dropout": 0.0, "batch_tokens": 96, "average": 1}
    found: dict[str, list[dict[str, float]]] = {}
    for name, values in ARCHITECTURES.items():
        for strategy in ({}, {"strategy": "mirrored", "replicas": 2}):
            output = folder / f"{name}-{len(strategy)}"
            run = load_run(train(pairs.config(output, **common, **values, **strategy)))
            losses = [epoch["training"]["loss"] for epoch in run.metrics["epochs"]]
            report = json.loads((run.directory / "report.json").read_text())
            each = {"first": losses[0], "learned": losses[-1]}
            found.setdefault(name, []).append({**each, "batches": report["batches_per_epoch"]})
    print(json.dumps(found))


if __name__ == "__main__":
    main()
