"""Trains a small Transformer on Multi30k English-German, through any number of interruptions.

    python benchmarks/multi30k.py MULTI30K_DIRECTORY RUNS --seed 1
    python benchmarks/multi30k.py MULTI30K_DIRECTORY RUNS --seed 1 --kind fused

The recipe of the literature's "Transformer-tiny": text tokenised by Moses and lower-cased, 10,000
joint BPE pieces, 4 + 4 layers of width 128, dropout 0.3, label smoothing 0.1, the mean of the last
10 epochs, beam 5. The other kinds go on from that model for some epochs: as it is ("more"), or with
an attention to a frozen BERT in every layer, pretrained ("fused") or random ("random"). The state
is saved every five minutes; the same command goes on with it.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from side_by_side.multi30k_data import TESTS, read_split, train_pieces
from side_by_side.multi30k_models import KINDS, made, seeded
from side_by_side.results import keep_row
from side_by_side.translation_scores import recaser, scores
from side_by_side.translation_training import Recipe, trained

RESULTS = Path(__file__).parent / "results" / "multi30k.json"
MODEL = ("dropout", "drop_net", "dtype", "bert_layers")
KEY = ("kind", "seed", "epochs", "cooldown", "rate", "tokens", *MODEL)
# Epochs, peak rate, updates of warm-up, epochs whose weights are averaged, epochs of cool-down.
RECIPES = {"vanilla": (100, 5e-3, 2000, 10, 20), "others": (30, 3e-3, 400, 5, 10)}


def main() -> None:
    """Trains on, averages, translates and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with train.en.gz and so on")
    parser.add_argument("runs", type=Path, help="folder of the states and the models")
    parser.add_argument("--kind", choices=KINDS, default="vanilla")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--rate", type=float, help="the highest one")
    parser.add_argument("--tokens", type=int, default=4096, help="cells of a side of a batch")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--drop-net", type=float, default=1.0)
    parser.add_argument("--bert-layers", type=int, help="of the encoder, whose states are read")
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    recipe = RECIPES.get(arguments.kind, RECIPES["others"])
    epochs, peak = arguments.epochs or recipe[0], arguments.rate or recipe[1]
    seeded(arguments.seed)
    runs = arguments.runs
    run, start = (runs / f"{kind}-{arguments.seed}" for kind in (arguments.kind, "vanilla"))
    train = read_split(arguments.data, "train")
    pieces = train_pieces(train, runs / "multi30k_bpe.model")
    sizes = tuple(getattr(arguments, name) for name in MODEL)
    model = made(arguments.kind, pieces, start / "model", *sizes)
    validation = read_split(arguments.data, "val")
    pairs, held_out = (model.pack(s.sources, s.targets) for s in (train, validation))
    how = Recipe(epochs, peak, *recipe[2:4], arguments.tokens, arguments.seed, recipe[4])
    settings = dict(zip(MODEL, sizes))
    best = trained(model, pairs, held_out, run, how, settings)
    row: dict[str, Any] = {"kind": arguments.kind, "seed": arguments.seed, "epochs": epochs}
    row |= {"cooldown": recipe[4], "rate": peak, "tokens": arguments.tokens, **settings}
    recase = recaser(train.references, "de")
    for test in TESTS:
        split = read_split(arguments.data, test)
        row[test] = scores(best.predict(split.sources), split, "de", recase)
        print(json.dumps(row), flush=True)
    keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
