"""Fine-tunes all-MiniLM-L6-v2 on GLUE tasks and writes the scores.

    python benchmarks/finetuning.py GLUE_DIRECTORY sst2:1:1 rte:3:5:256:8

A run is task:seeds:epochs[:length[:parts]]; seeds is how many, or first-last. With parts, batches
are of random company, each in so many parts of like length, whose gradients accumulate.

The recipe: AdamW, peak rate 1e-4, warm-up over 10 % of the steps, linear decay to 0, clipping at 1,
batches of 32 of like length, float32, at most 128 tokens. Scores are those of the dev set.
"""

import argparse
from pathlib import Path
from typing import Any

import keras
import numpy as np
from side_by_side.results import keep_row, seeds

from kbert.data.batches.plans import batch_plan, padding_share, random_batches
from kbert.data.classification.glue_tasks import GLUE_TASKS, read_glue
from kbert.metrics.glue import glue_metrics
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.classification.model import Classifier
from kbert.tasks.regression.model import Regressor

RESULTS = Path(__file__).parent / "results" / "finetuning.json"
KEY = ("task", "seed", "epochs", "length", "batches")
FOLDERS = {"sst2": "SST-2", "rte": "RTE", "cola": "CoLA", "stsb": "STS-B"}


def train(
    task: str,
    directory: Path,
    seed: int,
    epochs: int,
    kept: Path | None,
    length: int,
    parts: int | None,
) -> dict[str, Any]:
    """Trains once and returns the scores; the model goes to `kept`."""
    keras.utils.set_random_seed(seed)
    examples, held_out = (read_glue(task, directory, split) for split in ("train", "dev"))
    encoder, pair = "all-MiniLM-L6-v2", examples.text_b is not None
    model: Any
    if GLUE_TASKS[task].is_regression:
        model = Regressor.from_pretrained(encoder, pair=pair, max_sequence_length=length)
    else:
        labels = list(GLUE_TASKS[task].labels)
        model = Classifier.from_pretrained(encoder, labels, pair=pair, max_sequence_length=length)
    packed = model.pack(examples.text_a, examples.text_b)
    if parts is None:
        plan = batch_plan(packed.lengths, 32, shuffle=True)
    else:
        plan = random_batches(packed.lengths, 32, parts)
    steps = epochs * len(plan) // (parts or 1)
    schedule = WarmupLinearDecay(1e-4, steps, steps // 10)
    model.compile(optimizer=AdamW(schedule, gradient_accumulation_steps=parts))
    targets = np.asarray(model.encode_targets(examples.labels))
    dataset = model.dataset(packed, targets, batch_size=32, shuffle=True, seed=seed, parts=parts)
    model.fit(dataset, epochs=epochs, verbose=2)
    if kept is not None:
        model.save_pretrained(kept / f"{task}-{seed}")
    texts = held_out.text_a if held_out.text_b is None else (held_out.text_a, held_out.text_b)
    predictions = model.predict(texts)
    if predictions.ndim == 2:
        predictions = [model.labels[i] for i in predictions.argmax(axis=-1)]
    metrics = glue_metrics(task, held_out.labels, predictions)
    return {
        "train_examples": len(packed),
        "dev_examples": len(held_out),
        **{name: round(value, 4) for name, value in metrics.items()},
        "padding_share": round(padding_share(packed.lengths, plan), 4),
    }


def main() -> None:
    """Runs the tasks of the command line; each result is written at once."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="folder with SST-2/, RTE/, CoLA/, STS-B/")
    parser.add_argument("runs", nargs="+", help="task:seeds:epochs[:length[:parts]]")
    parser.add_argument("--keep", type=Path, help="new folder for the trained models")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True)
    for run in arguments.runs:
        task, wanted, count, *sizes = run.split(":")
        epochs, length, *several = map(int, (count, *(sizes or ["128"])))
        parts = several[0] if several else None
        batches = "like length" if parts is None else f"random, {parts} parts"
        for seed in seeds(wanted):
            row: dict[str, Any] = {"task": task, "seed": seed, "epochs": epochs}
            row |= {"length": length, "batches": batches}
            folder = arguments.directory / FOLDERS[task]
            row |= train(task, folder, seed, epochs, arguments.keep, length, parts)
            keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
