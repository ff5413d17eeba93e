"""Trains a small Transformer on Multi30k English-German, through any number of interruptions.

    python benchmarks/multi30k.py MULTI30K_DIRECTORY RUN_DIRECTORY --seed 1

The recipe of the literature's "Transformer-tiny": text tokenised by Moses and lower-cased, 10,000
joint BPE pieces, 4 + 4 layers of width 128, dropout 0.3, label smoothing 0.1, the mean of the last
10 epochs, beam 5. The state is saved every five minutes; the same command goes on with it.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import keras
from side_by_side.multi30k_data import TESTS, read_split, train_pieces
from side_by_side.results import keep_row
from side_by_side.translation_scores import scores

from kbert.models.transformer import Transformer
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import InverseSquareRootDecay
from kbert.pipelines.translation import Translator
from kbert.training.checkpoint_average import WeightsKeeper, average_weights, kept_weights
from kbert.training.train_state import Position, StateSaver, fit_from, load_state

RESULTS = Path(__file__).parent / "results" / "multi30k.json"


def main() -> None:
    """Trains on, averages, translates and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with train.en.gz and so on")
    parser.add_argument("run", type=Path, help="folder of the states and the result")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=70)
    parser.add_argument("--tokens", type=int, default=4096, help="cells of a side of a batch")
    parser.add_argument("--rate", type=float, default=5e-3)
    parser.add_argument("--warmup", type=int, default=2000)
    parser.add_argument("--dropout", type=float, default=0.3)
    parser.add_argument("--average", type=int, default=10)
    parser.add_argument("--dtype", default="mixed_bfloat16")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(arguments.seed)
    train = read_split(arguments.data, "train")
    pieces = train_pieces(train, arguments.run.parent / "multi30k_bpe.model")
    transformer = Transformer.from_size(
        "tiny", len(pieces), dropout=arguments.dropout, dtype=arguments.dtype
    )
    model = Translator(transformer, pieces, pieces, beam_size=5, dtype=arguments.dtype)
    rate = InverseSquareRootDecay(arguments.warmup, peak=arguments.rate)
    model.compile(AdamW(rate, 0.0, 0.9, 0.98, 1e-9, global_clipnorm=None))
    pairs = model.pack(train.sources, train.targets)
    validation = read_split(arguments.data, "val")
    held_out = model.dataset(model.pack(validation.sources, validation.targets))
    states = arguments.run / "states"
    position = load_state(states, model) or Position()
    print(f"begins at {position}; {model.count_params()} weights", flush=True)

    def batches(epoch: int, batch: int) -> Any:
        options = {"batch_tokens": arguments.tokens, "shuffle": True, "seed": arguments.seed}
        return model.dataset(pairs, first_epoch=epoch, first_batch=batch, **options)

    callbacks = [
        StateSaver(states, position),
        WeightsKeeper(arguments.run / "epochs", arguments.average),
        keras.callbacks.LambdaCallback(on_epoch_end=log_line(time.monotonic())),
    ]
    fit_from(
        model,
        position,
        arguments.epochs,
        batches,
        callbacks=callbacks,
        validation_data=held_out,
        verbose=0,
    )
    average_weights(model, kept_weights(arguments.run / "epochs"))
    if not (arguments.run / "model").exists():
        model.save_pretrained(arguments.run / "model")
    # Scores are those of float32 weights and a search in float32.
    best = Translator.from_pretrained(arguments.run / "model", dtype="float32")
    row = {"model": "tiny", "seed": arguments.seed, "epochs": arguments.epochs}
    for test in TESTS:
        split = read_split(arguments.data, test)
        row[test] = scores(best.predict(split.sources), split, "de")
        print(json.dumps(row), flush=True)
    keep_row(arguments.output, row, ("model", "seed"))


def log_line(begin: float) -> object:
    """Prints what an epoch came to."""

    def line(epoch: int, logs: dict[str, float]) -> None:
        shown = {name: round(value, 4) for name, value in logs.items()}
        print(f"{time.monotonic() - begin:.0f} s, epoch {epoch + 1}: {shown}", flush=True)

    return line


if __name__ == "__main__":
    main()
