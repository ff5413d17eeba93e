"""Runs of a TPU's batches, of one shape and several a call, on a CPU that is two devices.

    python -m tests.training.fixed_shapes_run FOLDER

prints a JSON object. What is a TPU's own, its strategy, is a mirrored one here.
"""

import json
import sys
from pathlib import Path
from unittest.mock import patch

from tests.replica_process import two_devices


def main() -> None:
    """Trains a translator and an encoder."""
    two_devices()
    from kbert.training.distributed import strategies as team
    from kbert.training.distributed.strategies import strategy
    from kbert.training.run import train
    from kbert.training.runs.run_directory import load_run
    from tests.training.tiny_corpus import TinyCorpus
    from tests.training.tiny_translations import TinyPairs

    folder = Path(sys.argv[1])
    tpu = {"strategy": "tpu"}
    found = {}
    with patch.object(team, "strategy", lambda name, replicas: strategy("mirrored", 2)):
        pairs = TinyPairs(folder)
        # 24 pieces a side and 3 rows of them: 2 for 2 replicas. 56 pairs are 28 batches.
        values = {**tpu, "batch_tokens": 80, "epochs": 1, "steps_per_execution": 10}
        run = load_run(train(pairs.config(folder / "translator", **values)))
        found["report"] = json.loads((run.directory / "report.json").read_text())
        found["epochs"] = run.metrics["epochs"]
        try:
            train(pairs.config(folder / "none", **tpu, batch_tokens=47, train="no file"))
        except ValueError as error:
            found["refused"] = str(error)
        corpus = TinyCorpus(folder)
        values = {**tpu, "steps_per_execution": 2, "save_every": 4}
        run = load_run(train(corpus.config(folder / "encoder", **values)))
        found["intervals"] = run.metrics["intervals"]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
