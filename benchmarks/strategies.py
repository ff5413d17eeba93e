"""Training with several replicas on one machine, against one device with all of its cores.

    python benchmarks/strategies.py

BERT of 6 layers x 384, batches of 64 x 128 in all, AdamW with clipping, dropout 0, through `fit`.
The same batches are trained on by one device, by two parts of the CPU (mirrored), and by two
processes with half of the cores each (multi-worker). `mean_loss` is the mean over all steps.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from side_by_side.results import write

from kbert.launch.launcher import cores_of, free_addresses
from kbert.training.distributed.tf_config import worker_config

RESULT = Path(__file__).parent / "results" / "strategies.json"
SETUPS = ("one", "mirrored", "multi-worker")
ROWS, LENGTH, VOCABULARY = 64, 128, 1000


def made_model() -> Any:
    """A classifier of 6 layers x 384, compiled."""
    import keras

    from kbert.models.bert import Bert
    from kbert.optimization.adamw import AdamW
    from kbert.tasks.classification.model import Classifier
    from kbert.text.vocabulary import Vocabulary
    from kbert.text.wordpiece.wordpiece import WordPiece

    keras.utils.set_random_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *map(str, range(VOCABULARY - 5))]
    encoder = Bert(VOCABULARY, 384, 6, 12, 1536, LENGTH, dropout=0.0, attention_dropout=0.0)
    tokenizer = WordPiece(Vocabulary(dict.fromkeys(words)))
    model = Classifier(encoder, tokenizer, ["no", "yes"], dropout=0.0)
    model.compile(AdamW(1e-4))
    return model


def child(setup: str, steps: int) -> None:
    """Trains, and prints the seconds of each step and the mean of their losses."""
    import keras
    import tensorflow as tf

    from kbert.training.distributed.strategies import strategy

    class Clock(keras.callbacks.Callback):
        """Notes when each step ends."""

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            times.append(time.perf_counter())
            means.append(float(logs["loss"]))  # Keras tells the mean up to here

    times, means = [], []
    made = strategy(setup, replicas=2 if setup == "mirrored" else None)
    draw = np.random.default_rng(1)
    ids = draw.integers(5, VOCABULARY, (steps * ROWS, LENGTH)).astype("int32")
    inputs = {"token_ids": ids, "segment_ids": ids * 0, "padding_mask": ids > 0}
    labels = draw.integers(0, 2, len(ids)).astype("int32")
    with made.scope():
        model = made_model()
    data = tf.data.Dataset.from_tensor_slices((inputs, labels)).batch(ROWS)
    model.fit(data, verbose=0, callbacks=[Clock()])
    print(json.dumps({"seconds": list(np.diff(times)), "mean_loss": means[-1]}))


def played(setup: str, steps: int) -> dict[str, Any]:
    """Runs a setup in processes of its own, and returns what the first one printed."""
    count = 2 if setup == "multi-worker" else 1
    addresses, cores = free_addresses(count), sorted(os.sched_getaffinity(0))
    command = [sys.executable, __file__, "--child", setup, "--steps", str(steps)]
    processes = []
    for number in range(count):
        variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
        variables |= {"TF_CONFIG": worker_config(addresses, number)} if count > 1 else {}
        process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
        os.sched_setaffinity(process.pid, cores_of(number, count, cores))
        processes.append(process)
    printed = [process.communicate()[0] for process in processes]
    return json.loads(printed[0].splitlines()[-1])


def main() -> None:
    """Lets the setups take turns, and tells the median of their steps."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3, help="turns of each setup")
    parser.add_argument("--steps", type=int, default=12, help="steps of a turn; two are warm-up")
    parser.add_argument("--output", type=Path, default=RESULT)
    parser.add_argument("--child", choices=SETUPS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.steps)
        return
    found: dict[str, Any] = {setup: [] for setup in SETUPS}
    for setup in SETUPS * options.rounds:
        found[setup].append(played(setup, options.steps))
    medians = {s: statistics.median(x for f in found[s] for x in f["seconds"][1:]) for s in SETUPS}
    rows = []
    for setup in SETUPS:
        row = {"strategy": setup, "milliseconds": round(1000 * medians[setup], 1)}
        row |= {"times_one": round(medians["one"] / medians[setup], 3)}
        rows.append(row | {"mean_loss": found[setup][-1]["mean_loss"]})
    settings = {"rounds": options.rounds, "steps": options.steps}
    write(options.output, {"rows": rows}, [], settings)


if __name__ == "__main__":
    main()
