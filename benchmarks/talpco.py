"""Trains a small Transformer on TALPCo English-Burmese, through any number of interruptions.

    python benchmarks/talpco.py TALPCO_DIRECTORY RUNS --seed 1
    python benchmarks/talpco.py TALPCO_DIRECTORY RUNS --seed 1 --kind fused

1,172 pairs teach no language: this shows that the whole way runs, and that raw Burmese, which is
not cut into words, comes out whole. Joint unigram pieces, 4 + 4 layers of width 128, dropout 0.3,
label smoothing 0.1, the mean of the last epochs, beam 5. The other kinds go on from that model, as
in `multi30k.py`. The state is saved every five minutes; the same command goes on with it.
"""

import argparse
from pathlib import Path
from typing import Any

import tensorflow as tf
from side_by_side.multi30k_models import KINDS, made, seeded
from side_by_side.results import keep_row
from side_by_side.talpco_data import broken_places, read_splits, train_pieces
from side_by_side.translation_training import Recipe, trained

from kbert.metrics.bleu import translation_metrics

RESULTS = Path(__file__).parent / "results" / "talpco.json"
KEY = ("kind", "seed", "epochs", "rate", "tokens", "dropout", "drop_net", "dtype")
# Epochs, peak rate, updates of warm-up, epochs whose weights are averaged.
RECIPES = {"vanilla": (120, 3e-3, 400, 10), "others": (30, 1e-3, 100, 5)}


def main() -> None:
    """Trains on, averages, translates and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with data_eng.txt and data_myn.txt")
    parser.add_argument("runs", type=Path, help="folder of the states and the models")
    parser.add_argument("--kind", choices=KINDS, default="vanilla")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--rate", type=float, help="the highest one")
    parser.add_argument("--tokens", type=int, default=1024, help="cells of a side of a batch")
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--drop-net", type=float, default=1.0)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    recipe = RECIPES.get(arguments.kind, RECIPES["others"])
    epochs, peak = arguments.epochs or recipe[0], arguments.rate or recipe[1]
    seeded(arguments.seed)
    run, start = (
        arguments.runs / f"{kind}-{arguments.seed}" for kind in (arguments.kind, "vanilla")
    )
    splits = read_splits(arguments.data)
    pieces = train_pieces(splits["train"], arguments.runs / "talpco_unigram.model")
    for split in splits.values():
        check_round_trip(pieces, split.targets)
    sizes = (arguments.dropout, arguments.drop_net, arguments.dtype)
    model = made(arguments.kind, pieces, start / "model", *sizes)
    pairs, held_out = (
        model.pack(splits[name].sources, splits[name].targets) for name in ("train", "validation")
    )
    how = Recipe(epochs, peak, *recipe[2:], arguments.tokens, arguments.seed)
    settings = dict(zip(("dropout", "drop_net", "dtype"), sizes))
    best = trained(model, pairs, held_out, run, how, settings)
    row: dict[str, Any] = {"kind": arguments.kind, "seed": arguments.seed, "epochs": epochs}
    row |= {"rate": peak, "tokens": arguments.tokens, **settings}
    for name in ("validation", "test"):
        found = best.predict(splits[name].sources)
        row[name] = scores(found, splits[name].targets)
        for source, translation in list(zip(splits[name].sources, found))[:3]:
            print(f"{source}\n  {translation}", flush=True)
    keep_row(arguments.output, row, KEY)


def check_round_trip(pieces: Any, texts: list[str]) -> None:
    """Raises a ValueError unless cutting into pieces and joining gives back every text."""
    back = pieces.detokenize(pieces.tokenize(tf.constant(texts))).numpy()
    wrong = [text for text, other in zip(texts, back) if text != other.decode()]
    if wrong:
        raise ValueError(f"`pieces` must give back all texts. Received: {len(wrong)}, {wrong[:3]}")


def scores(hypotheses: list[str], references: list[str]) -> dict[str, Any]:
    """chrF, BLEU of phrases between spaces, and what is broken."""
    broken = [place for text in hypotheses for place in broken_places(text)]
    if broken:
        print(f"broken: {broken[:10]}", flush=True)
    return {
        **translation_metrics(hypotheses, references),
        "broken_syllables": len(broken),
        "broken_syllables_of_the_references": sum(len(broken_places(t)) for t in references),
        "empty": hypotheses.count(""),
    }


if __name__ == "__main__":
    main()
