"""Trains one rung of the ladder from one vector to attention on Multi30k, and scores it.

    python benchmarks/ladder.py MULTI30K_DIRECTORY RUNS --rung bahdanau --direction de-en --seed 1

All rungs have the same BPE pieces of text tokenised by Moses and lower-cased, the same batches by
tokens, and about ten million weights. Those without a number learn for 12 epochs; one with "+"
begins with the model of the rung before the sign, which must be trained. The state is saved every
five minutes; the same command goes on with it. Scores are those of beam 5 and of greedy search.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import keras
from side_by_side.ladder_rungs import RUNGS, by_length, made, recipe, run_folder
from side_by_side.multi30k_data import TESTS, read_split, train_pieces
from side_by_side.multi30k_models import seeded
from side_by_side.results import keep_row
from side_by_side.translation_scores import recaser, scores, tokenized_bleu
from side_by_side.translation_training import trained

from kbert.storage.files import write_atomically

RESULTS = Path(__file__).parent / "results" / "ladder.json"
KEY = ("rung", "direction", "seed", "epochs", "tokens", "dropout", "dtype")
PARTS = 6


def measured(model: Any, arguments: argparse.Namespace, run: Path) -> dict[str, Any]:
    """Scores of all test sets, and of parts of the first by length."""
    target = arguments.direction.partition("-")[2]
    train = read_split(arguments.data, "train", arguments.direction)
    recase = recaser(train.references, target)
    row: dict[str, Any] = {}
    for test in TESTS:
        split = read_split(arguments.data, test, arguments.direction)
        model.beam_size = 5
        begin = time.perf_counter()
        found = model.predict(split.sources)
        row[test] = scores(found, split, target, recase)
        if test == TESTS[0]:
            row["seconds"] = round(time.perf_counter() - begin, 1)
            write_atomically(run / f"{test}.txt", "".join(f"{line}\n" for line in found))
            row["by_length"] = by_length(found, split, PARTS)
            row["by_third"] = [part["bleu"] for part in by_length(found, split, 3)]
            model.beam_size = 1
            greedy = tokenized_bleu(model.predict(split.sources), split.targets)
            row["greedy"] = greedy["tokenized_lowercase_bleu"]
    return row


def main() -> None:
    """Trains on, averages, translates and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with train.en.gz and so on")
    parser.add_argument("runs", type=Path, help="folder of the states and the models")
    parser.add_argument("--rung", choices=list(RUNGS), required=True)
    parser.add_argument("--direction", choices=("de-en", "en-de"), default="de-en")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, help="by default those of the rung")
    parser.add_argument("--tokens", type=int, default=2048, help="cells of a side of a batch")
    parser.add_argument("--dropout", type=float, help="by default that of the rung")
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    rung, place = RUNGS[arguments.rung], (arguments.direction, arguments.seed)
    arguments.epochs = arguments.epochs or rung.epochs
    if arguments.dropout is None:
        arguments.dropout = rung.dropout
    seeded(arguments.seed)
    train = read_split(arguments.data, "train", "en-de")
    pieces = train_pieces(train, arguments.runs / "multi30k_bpe.model")
    start = run_folder(arguments.runs, rung.start, *place) / "model" if rung.start else None
    model = made(arguments.rung, pieces, arguments.dropout, arguments.dtype, start)
    run = run_folder(arguments.runs, arguments.rung, *place)
    sides = (read_split(arguments.data, part, arguments.direction) for part in ("train", "val"))
    pairs, held_out = (model.pack(side.sources, side.targets) for side in sides)
    how = recipe(arguments.rung, arguments.epochs, arguments.tokens, arguments.seed)
    settings = {"dropout": arguments.dropout, "dtype": arguments.dtype}
    begin = time.perf_counter()
    best = trained(model, pairs, held_out, run, how, settings)
    if keras.backend.backend() != "tensorflow":
        return print(f"learned; the same command scores {run} with TensorFlow", flush=True)
    row = {key: getattr(arguments, key) for key in KEY}
    row |= {"weights": sum(w.value.shape.num_elements() for w in model.trainable_weights)}
    row |= {"minutes_since_resumed": round((time.perf_counter() - begin) / 60, 1)}
    row |= measured(best, arguments, run)
    print(json.dumps(row), flush=True)
    keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
