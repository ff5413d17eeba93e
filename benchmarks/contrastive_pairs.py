"""Does contrastive training on SNLI lift STS-B of a BERT with random weights? By several seeds.

    python benchmarks/contrastive_pairs.py GLUE_DIRECTORY --vocabulary vocab.txt --seeds 3

Anchors are premises of SNLI, their texts the hypotheses that they entail, and hard negatives those
that they contradict, where there are any. The recipe: AdamW, peak rate 5e-4, warm-up over 10 % of
the steps, linear decay to 0, batches of 128, 32 tokens a text, the mean of all states; the epoch
with the best correlation on the dev set of STS-B stays, so the gain is slightly flattered. A run is
under --runs, and an interrupted one goes on. With --encoder an encoder with pretrained weights is
taken instead.
"""

import argparse
import csv
import gzip
import json
from pathlib import Path
from typing import Any

import keras
import numpy as np
from side_by_side.machine import machine
from side_by_side.results import parser, table

from kbert.data.classification.text_tuples import read_tuple_examples
from kbert.metrics.embeddings import embedding_metrics
from kbert.storage.files import write_atomically
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.recipes.finetuned_model import build_model
from kbert.training.recipes.finetuning import read_run_data
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run

LENGTH = 32
# Keys of a configuration whose values are places on one machine.
_PLACES = ("train", "validation", "vocabulary", "output")


def write_triplets(directory: Path, path: Path, most: int | None) -> int:
    """Writes anchors, positives and negatives of SNLI; returns how many."""
    by_premise: dict[str, dict[str, list[str]]] = {}
    with gzip.open(directory / "SNLI-subset" / "train.tsv.gz", "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            found = by_premise.setdefault(row["sentence1"], {})
            found.setdefault(row["label"], []).append(row["sentence2"])
    triplets = [
        (premise, positive, negative)
        for premise, found in by_premise.items()
        for positive, negative in zip(found.get("entailment", []), found.get("contradiction", []))
    ][:most]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writerow(("anchor", "positive", "negative"))
        writer.writerows(triplets)
    return len(triplets)


def untrained(config: RunConfig, seed: int) -> float:
    """The Spearman correlation on STS-B of the model before its first step."""
    config = config.with_values(seed=seed, seeds=1)
    keras.utils.set_random_seed(seed)
    pairs = read_tuple_examples(config.validation or "")
    model = build_model(config, read_run_data(config))
    vectors = np.asarray(model.predict(pairs.texts))
    return embedding_metrics(vectors, pairs.labels)["spearman"]


def configuration(arguments: argparse.Namespace, pairs: Path) -> RunConfig:
    """The run, for all seeds."""
    scratch = {"encoder": f"scratch:{arguments.size}", "vocabulary": arguments.vocabulary}
    values: dict[str, Any] = {"encoder": arguments.encoder} if arguments.encoder else scratch
    values |= {"batch_size": 128, "learning_rate": arguments.learning_rate}
    return RunConfig(
        task="embedding",
        train=str(pairs),
        validation=str(arguments.directory / "STS-B" / "dev.tsv"),
        max_sequence_length=LENGTH,
        epochs=arguments.epochs,
        seeds=arguments.seeds,
        output=str(arguments.runs / "contrastive"),
        **values,
    )


def main() -> None:
    """Writes the pairs, trains all seeds, and writes the correlations before and after."""
    arguments_parser = parser("contrastive_pairs", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="with SNLI-subset/ and STS-B/")
    arguments_parser.add_argument("--vocabulary", help="one token a line, for random weights")
    arguments_parser.add_argument("--size", default="mini", help="of the random encoder")
    arguments_parser.add_argument("--encoder", help="a pretrained one instead")
    arguments_parser.add_argument("--learning-rate", type=float, default=5e-4)
    arguments_parser.add_argument("--epochs", type=int, default=3)
    arguments_parser.add_argument("--seeds", type=int, default=3)
    arguments_parser.add_argument("--most", type=int, help="only the first so many examples")
    arguments_parser.add_argument("--runs", type=Path, default=Path("runs"), help="new folder")
    arguments = arguments_parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    count = write_triplets(arguments.directory, arguments.runs / "pairs.tsv", arguments.most)
    config = configuration(arguments, arguments.runs / "pairs.tsv")
    before = {seed: untrained(config, seed) for seed in range(1, arguments.seeds + 1)}
    folder = train(config)
    folders = {1: folder} if arguments.seeds == 1 else {s: folder / f"seed-{s}" for s in before}
    rows = []
    for seed, run in folders.items():
        after = load_run(run).metrics["final"]["validation"]["spearman"]
        rows.append({"seed": seed, "before": round(before[seed], 4), "after": round(after, 4)})
    given = sorted(config.to_dict().items())
    facts = {key: str(value) for key, value in given if value and key not in _PLACES}
    result = {"machine": machine(), "examples": count, "configuration": facts, "rows": rows}
    write_atomically(arguments.output, json.dumps(result, indent=1) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
