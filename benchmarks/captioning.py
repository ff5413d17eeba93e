"""Trains captioners on photographs with five captions each, and scores them on 100 others.

    python benchmarks/captioning.py CAPTIONS EFFICIENTNET RUNS --kind soft --seed 1

Soft and hard attention, the same decoder with the mean of all places, and a Transformer see the
same 14 x 14 map of EfficientNet-Lite0, frozen: its last one, of images of 448 x 448 (--map 1280),
or one of 224 x 224 (672 or 112); --mirrored shows each photograph of training mirrored, too.
CAPTIONS is a folder with captions.txt.gz and images/; the same command goes on with a stopped run.
"""

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

from side_by_side.captioned_photographs import data_options
from side_by_side.efficientnet_lite import MAP_112, MAP_672, MAP_1280, SIZE, efficientnet_lite0
from side_by_side.results import keep_row

from kbert.data.captions.captioned_images import read_captions
from kbert.metrics.bleu import caption_metrics
from kbert.training.config.captioning_config import CaptioningConfig
from kbert.training.run import train
from kbert.training.runs.run_directory import load_run

RESULTS = Path(__file__).parent / "results" / "captioning.json"
KEY = ("kind", "seed", "epochs", "penalty", "map", "mirrored")
# Channels of a map -> its layer, and the size of the images.
MAPS = {1280: (MAP_1280, 2 * SIZE), 672: (MAP_672, SIZE), 112: (MAP_112, SIZE)}
SPLIT = (800, 100, 100)
_OF_LSTM = {"hidden_dim": 256, "attention_dim": 128, "dropout": 0.5}
KINDS: dict[str, dict[str, Any]] = {
    "soft": _OF_LSTM,
    "hard": {**_OF_LSTM, "attention": "hard"},
    "mean": {**_OF_LSTM, "attention": "mean"},
    "transformer": {
        "architecture": "image-transformer",
        "hidden_dim": 256,
        "num_decoder_layers": 2,
        "intermediate_dim": 512,
        "dropout": 0.3,
    },
}
SHOWN = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "chrf", "rouge_l", "perplexity")


def network(weights: Path, runs: Path, size: int) -> Path:
    """Returns the file of the network, which is written once."""
    file = runs / f"efficientnet_lite0_{size}.keras"
    if not file.is_file():
        runs.mkdir(parents=True, exist_ok=True)
        efficientnet_lite0(weights, size=size).save(file)
    return file


def config(arguments: argparse.Namespace) -> CaptioningConfig:
    """Returns the configuration of a run."""
    kind: str = arguments.kind
    layer, size = MAPS[arguments.map]
    name = "-".join(str(getattr(arguments, key)) for key in KEY[:-1])
    mirrored = arguments.runs / "mirrored" if arguments.mirrored else None
    values: dict[str, Any] = {
        "task": "captioning",
        **data_options(arguments.data, SPLIT, mirrored),
        "network": str(network(arguments.weights, arguments.runs, size)),
        "network_layer": layer,
        "features": str(arguments.runs / f"features-{arguments.map}"),
        "vocabulary_size": 2000,
        "feature_dropout": 0.5,
        "keep": "last",
        "epochs": arguments.epochs,
        "seed": arguments.seed,
        "output": str(arguments.runs / f"{name}{'-mirrored' * arguments.mirrored}"),
        **KINDS[kind],
    }
    if kind in ("soft", "hard"):
        values["attention_penalty"] = arguments.penalty
    return CaptioningConfig.from_dict(values)


def most_frequent(data: Path) -> dict[str, Any]:
    """Returns the scores of the most frequent caption of training, for every image."""
    examples = read_captions(data / "captions.txt.gz", data / "images")
    train_part, _, test = examples.split(SPLIT)
    known = Counter(text.lower() for _, text in train_part.pairs)
    caption = known.most_common(1)[0][0]
    found = caption_metrics([caption] * len(test), test.captions or [])
    return {"caption": caption, **{name: found[name] for name in SHOWN if name in found}}


def main() -> None:
    """Trains on, and keeps the scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with captions.txt.gz and images/")
    parser.add_argument("weights", type=Path, help="efficientnet-lite0.safetensors")
    parser.add_argument("runs", type=Path, help="folder of the runs")
    parser.add_argument("--kind", choices=(*KINDS, "most frequent"), required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--penalty", type=float, default=0.0)
    parser.add_argument("--map", type=int, choices=MAPS, default=1280, help="channels of the map")
    parser.add_argument("--mirrored", action="store_true", help="mirror photographs of training")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    row: dict[str, Any] = {key: getattr(arguments, key) for key in KEY}
    if arguments.kind == "most frequent":
        row |= most_frequent(arguments.data)
    else:
        run = load_run(train(config(arguments)))
        seconds = [epoch["seconds"] for epoch in run.metrics["epochs"]]
        for part in ("validation", "test"):
            found = run.metrics["final"][part]
            shown = {name: found[name] for name in SHOWN if name in found}  # older runs lack some
            row |= {name if part == "test" else f"{part}_{name}": shown[name] for name in shown}
        row |= {"kept_epoch": run.metrics["kept_epoch"], "training_seconds": sum(seconds)}
    keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
