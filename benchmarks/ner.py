"""Fine-tunes all-MiniLM-L6-v2 on WNUT-17 or wikigold and measures its entities.

    python benchmarks/ner.py NER_DIRECTORY wnut17:3:5 wikigold:3:5

A run is name:seeds:epochs; seeds is how many, or first-last. The recipe: AdamW, peak rate 1e-4 (of
a reader on the frozen encoder's states 1e-3), warm-up over 10 % of the steps, linear decay to 0,
clipping at 1, batches of 32 of like length, float32, windows of at most 128 tokens. WNUT-17 has a
test set; of wikigold it is the last fifth of the file. The clock begins before the tokenization.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import keras
from side_by_side.results import keep_row, seeds

from kbert.checkpoints.pretrained import resolve
from kbert.data.batches.plans import batch_plan
from kbert.data.entities.tagged_sentences import TaggedSentences, in_scheme, read_conll
from kbert.metrics.entities import entity_metrics
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.ner.task import measure_entities, tag_names

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "ner.json"
KEY = ("data", "with", "seed", "epochs")
SHOWN = ("f1", "precision", "recall", "strict_f1")
_WNUT = ("wnut17train.conll", "emerging.test.annotated")


def sentences(name: str, directory: Path) -> tuple[TaggedSentences, TaggedSentences]:
    """What is learned from, and what is measured, with BIO tags."""
    if name == "wikigold":
        every = in_scheme(read_conll(directory / name / "wikigold.conll.txt"), "bio")
        cut = len(every) * 4 // 5
        return every.select(range(cut)), every.select(range(cut, len(every)))
    learned, measured = (read_conll(directory / name / file) for file in _WNUT)
    return learned, measured


def train(name: str, directory: Path, seed: int, epochs: int, reader: str) -> dict[str, Any]:
    """Trains once, all weights or a reader of states, and returns scores and speed."""
    keras.utils.set_random_seed(seed)
    examples, held_out = sentences(name, directory)
    tags = tag_names(sorted({*examples.labels, *held_out.labels}), "bio")
    features = {"features": "last4-concat", "reader": reader} if reader else {}
    model = EntityRecognizer.from_pretrained("all-MiniLM-L6-v2", tags, **features)
    start = time.perf_counter()
    windows, targets = model.examples(model.read_inputs(examples), examples.tags)
    before = time.perf_counter() - start
    steps, peak = epochs * len(batch_plan(windows.packed.lengths, 32)), 1e-3 if reader else 1e-4
    model.compile(optimizer=AdamW(WarmupLinearDecay(peak, steps, steps // 10)))
    with tempfile.TemporaryDirectory() as cache:
        model.encoder.feature_cache = cache if reader else None
        start = time.perf_counter()
        dataset = model.dataset(windows, targets, batch_size=32, shuffle=True, seed=seed)
        model.fit(dataset, epochs=epochs, verbose=2)
        model.encoder.feature_cache = None
    seconds = time.perf_counter() - start + before
    speed = epochs * windows.packed.tokens / seconds
    return shown(measure_entities(model, held_out), seconds, speed)


def train_peer(name: str, directory: Path, seed: int, epochs: int) -> dict[str, Any]:
    """The same with transformers."""
    examples, held_out = sentences(name, directory)
    labels = sorted({tag for s in (examples, held_out) for row in s.tags or () for tag in row})
    learned = {"words": examples.words, "tags": examples.tags}
    data = {"labels": labels, "train": learned, "test": {"words": held_out.words}}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "sentences.json")
        file.write_text(json.dumps(data))
        python = os.environ.get("KBERT_PEER_PYTHON", sys.executable)
        options = [str(file), str(resolve("all-MiniLM-L6-v2")), str(seed), str(epochs)]
        command = [python, "-m", "peers.torch_ner", *options]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=HERE)
    told = json.loads(done.stdout.splitlines()[-1])
    found = entity_metrics(held_out.tags or [], told["tags"], "bio")
    return shown(found, told["seconds"], told["real_tokens_per_second"])


def shown(found: dict[str, Any], seconds: float, speed: float) -> dict[str, Any]:
    """Scores and speed as they are written."""
    scores = {key: round(found[key], 4) for key in SHOWN}
    return {**scores, "seconds": round(seconds, 1), "real_tokens_per_second": round(speed)}


def main() -> None:
    """Runs the runs of the command line; each result is written at once."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="folder with wnut17/ and wikigold/")
    parser.add_argument("runs", nargs="+", help="name:seeds:epochs")
    parser.add_argument("--peer", action="store_true", help="transformers as well")
    parser.add_argument("--reader", choices=("linear", "bilstm"), default="", help="of four blocks")
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    way = f"kbert, last4-concat, {arguments.reader}" if arguments.reader else "kbert"
    ways: Any = {way: partial(train, reader=arguments.reader)}
    ways |= {"transformers": train_peer} if arguments.peer else {}
    for run in arguments.runs:
        name, wanted, epochs = run.split(":")
        for seed in seeds(wanted):
            for who, trained in ways.items():
                row = {"data": name, "with": who, "seed": seed, "epochs": int(epochs)}
                row |= trained(name, arguments.directory, seed, int(epochs))
                keep_row(arguments.output, row, KEY)


if __name__ == "__main__":
    main()
