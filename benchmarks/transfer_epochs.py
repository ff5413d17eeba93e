"""Times an epoch of each way of transfer, and of three tasks alone and at once, in turns.

    python benchmarks/transfer_epochs.py GLUE_DIRECTORY

An epoch has so many training examples of each task in batches of 32 of like length, at most 256
tokens, float32. Each contender trains once before, so that its graph is there. "head, states in
memory" has the batches of "features, linear" as tensors: what reading the files costs is between.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from side_by_side.results import write
from side_by_side.transfer_data import examples
from side_by_side.transfer_rows import ADAPTED, ENCODER

import kbert

RESULTS = Path(__file__).parent / "results" / "transfer_epochs.json"
TASKS = ("rte", "sick", "cola")
Epoch = Callable[[], None]


def read(task: str, glue: Path, count: int) -> tuple[Any, list[str]]:
    """Texts or pairs of a task, and their labels."""
    rows = list(examples(task, "train", glue))[:count]
    labels = [row["label"] for row in rows]
    if "text" in rows[0]:
        return [row["text"] for row in rows], labels
    return ([row["text_a"] for row in rows], [row["text_b"] for row in rows]), labels


def classifier(x: Any, y: list[str], **kwargs: Any) -> Any:
    """A new classifier on the encoder."""
    given = {"labels": sorted(set(y)), "pair": isinstance(x, tuple), "max_sequence_length": 256}
    return kbert.Classifier.from_pretrained(ENCODER, **given, **kwargs)


def epoch_of(model: Any, x: Any, y: Any, in_memory: bool = False) -> Epoch:
    """Compiles a model, and returns what trains it for an epoch on texts that are tokenized."""
    model.compile()
    found, targets = model.batching.training_examples(x, y)
    dataset = model.dataset(found, targets, batch_size=32, shuffle=True)
    dataset = dataset.cache() if in_memory else dataset
    return lambda: model.fit(dataset, epochs=1, verbose=0) and None


def contenders(data: dict[str, tuple[Any, list[str]]], cache: str) -> dict[str, Epoch]:
    """All ways of RTE; and the three tasks alone and at once."""
    x, y = data["rte"]
    found = {"fine-tuning (rte)": epoch_of(classifier(x, y), x, y)}
    for reader in ("linear", "bilstm"):
        for in_memory in (False, True):
            model = classifier(x, y, features="last4-concat", reader=reader)
            model.encoder.feature_cache = cache
            name = f"head {reader}, states in memory" if in_memory else f"features, {reader}"
            found[name] = epoch_of(model, x, y, in_memory)
    for kind in ("houlsby", "pfeiffer", "lora"):
        found[f"adapter {kind}"] = epoch_of(classifier(x, y, adapter={"kind": kind}), x, y)
    model = classifier(x, y)
    for name in ADAPTED:
        model.encoder.add_adapter(name, "pfeiffer")
    model.encoder.add_adapter_fusion(list(ADAPTED))
    model.encoder.train_adapter(list(ADAPTED))
    found["AdapterFusion of three"] = epoch_of(model, x, y)
    for name in TASKS[1:]:
        found[f"fine-tuning ({name})"] = epoch_of(classifier(*data[name]), *data[name])
    found["multi-task"] = together(data)
    return found


def together(data: dict[str, tuple[Any, list[str]]]) -> Epoch:
    """An epoch of all examples of the three tasks."""
    x, y = data["rte"]
    first = classifier(x, y)
    models = {"rte": first}
    for name in TASKS[1:]:
        x, y = data[name]
        given = {"labels": sorted(set(y)), "pair": isinstance(x, tuple)}
        models[name] = kbert.Classifier(first.encoder, first.tokenizer, **given)
    model = kbert.MultiTaskModel(models)
    model.compile()
    dataset = model.dataset(model.batching.mixed(data), batch_size=32, shuffle=True)
    return lambda: model.fit(dataset, epochs=1, verbose=0) and None


def main() -> None:
    """Times all in turns, and writes the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("glue", type=Path, help="folder with RTE/, SICK/ and CoLA/")
    parser.add_argument("--count", type=int, default=1000, help="training examples of each task")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    data = {task: read(task, arguments.glue, arguments.count) for task in TASKS}
    with tempfile.TemporaryDirectory() as cache:
        epochs = contenders(data, cache)
        times: dict[str, list[float]] = {name: [] for name in epochs}
        for _ in range(arguments.rounds + 1):
            for name, epoch in epochs.items():
                begin = time.perf_counter()
                epoch()
                times[name].append(time.perf_counter() - begin)
    rows: list[dict[str, Any]] = [
        {"epoch of": name, "seconds": round(statistics.median(found[1:]), 2)}
        for name, found in times.items()
    ]
    parts = sum(row["seconds"] for row in rows if row["epoch of"].startswith("fine-tuning ("))
    whole = next(row["seconds"] for row in rows if row["epoch of"] == "multi-task")
    settings = {"examples": arguments.count, "multi-task over its parts": round(whole / parts, 3)}
    write(arguments.output, {"epochs": rows}, [], settings)


if __name__ == "__main__":
    main()
