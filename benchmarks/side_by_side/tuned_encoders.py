"""Encoders that were pretrained, and one that was not, learning SST-2 and QNLI."""

import argparse
import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras

from kbert.models.bert import Bert
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.run import train

RANDOM = "random"


def untaught(runs: Path, seed: int) -> str:
    """A folder with an encoder like that of the long run, but of random weights."""
    folder = runs / f"{RANDOM}-{seed}"
    if not folder.is_dir():
        keras.utils.set_random_seed(seed)
        config = Bert.from_pretrained(runs / "hour/model").get_config()
        Bert.from_config(config).save_pretrained(folder)
    return str(folder)


def tuned(task: str, encoder: str, seed: int, arguments: argparse.Namespace) -> float:
    """The accuracy on the dev set of an encoder that learned a task with one seed."""
    data, runs = arguments.runs / "data", arguments.runs
    output = runs / f"{task}-{encoder}-{seed}"
    # In a second pass, without dropout, the loss on the dev set rises.
    options: dict[str, Any] = {"epochs": 1, "learning_rate": arguments.tuning_rate, "seed": seed}
    if encoder == RANDOM:
        options["encoder"] = untaught(runs, seed)
        options["vocabulary"] = str(runs / "hour/model/vocabulary.txt")
    else:
        options["encoder"] = str(runs / encoder / "model")
    if task == "sst2":
        options |= {"glue": "sst2", "data": str(arguments.glue)}
    else:
        files = {"train": "qnli-train.tsv", "validation": "qnli-dev.tsv"}
        options |= {key: str(data / name) for key, name in files.items()}
    if not output.is_dir():
        train(RunConfig(output=str(output), precision="mixed_bfloat16", keep="last", **options))
    found = json.loads((output / "metrics.json").read_text())
    return round(100 * float(found["final"]["validation"]["accuracy"]), 2)


def tuned_rows(
    encoder: str, arguments: argparse.Namespace, tasks: Sequence[str] = ("sst2", "qnli")
) -> list[dict[str, Any]]:
    """A row a task: each seed's accuracy, their mean, and its standard error."""
    rows = []
    for task in tasks:
        found = [tuned(task, encoder, seed + 1, arguments) for seed in range(arguments.seeds)]
        error = statistics.stdev(found) / len(found) ** 0.5 if len(found) > 1 else 0.0
        row = {"encoder": encoder, "task": task, "accuracies": ", ".join(map(str, found))}
        rows.append(row | {"mean": round(statistics.fmean(found), 2), "error": round(error, 2)})
    return rows
