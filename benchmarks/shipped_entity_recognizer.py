"""Trains the entity recognizer that kbert ships.

    python benchmarks/shipped_entity_recognizer.py NER_DIRECTORY RUN_DIRECTORY

Bottleneck adapters in all-MiniLM-L6-v2 and a tag head learn from the training part of WNUT-17 and
the first four fifths of wikigold, in the order of the file. The two name different types; both are
read as persons, locations, organizations and other names. Measured are WNUT-17's test set and the
last fifth of wikigold; choices between settings are made on WNUT-17's dev set.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import keras

from kbert.data.batches.plans import batch_plan
from kbert.data.entities.tagged_sentences import TaggedSentences, in_scheme, read_conll
from kbert.optimization.adamw import AdamW
from kbert.optimization.schedules import WarmupLinearDecay
from kbert.pipelines.saved_pipeline import save_adapters
from kbert.storage.files import write_atomically
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.ner.task import measure_entities, tag_names

BASE = "all-MiniLM-L6-v2"
TYPES = {
    "person": "PER",
    "location": "LOC",
    "group": "ORG",
    "corporation": "ORG",
    "product": "MISC",
    "creative-work": "MISC",
}
SHOWN = ("f1", "precision", "recall", "strict_f1", "per_type")


def common_types(sentences: TaggedSentences) -> TaggedSentences:
    """BIO tags with the four types."""
    sentences = in_scheme(sentences, "bio")
    tags = [
        [tag[:2] + TYPES.get(tag[2:], tag[2:]) if tag != "O" else tag for tag in row]
        for row in sentences.tags or ()
    ]
    return replace(sentences, tags=tags)


def together(first: TaggedSentences, second: TaggedSentences) -> TaggedSentences:
    """Two sets of sentences as one."""
    columns = {name: getattr(first, name) + getattr(second, name) for name in first.columns}
    return replace(first, **columns, source=f"{first.source} and {second.source}")


def main() -> None:
    """Trains, measures, and writes model and scores."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder with wnut17/ and wikigold/")
    parser.add_argument("run", type=Path, help="new folder for the result")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--adapter-dim", type=int, default=64)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(arguments.seed)
    wnut = arguments.data / "wnut17"
    gold = common_types(read_conll(arguments.data / "wikigold" / "wikigold.conll.txt"))
    cut = len(gold) * 4 // 5
    learned = together(common_types(read_conll(wnut / "wnut17train.conll")), gold.head(cut))
    measured = {
        "wnut17_dev": common_types(read_conll(wnut / "emerging.dev.conll")),
        "wnut17_test": common_types(read_conll(wnut / "emerging.test.annotated")),
        "wikigold_last_fifth": gold.select(range(cut, len(gold))),
    }
    model = EntityRecognizer.from_pretrained(
        BASE,
        tag_names(sorted(set(TYPES.values())), "bio"),
        adapter={"kind": "houlsby", "adapter_dim": arguments.adapter_dim},
        encoder_dropout=arguments.dropout,
    )
    windows, targets = model.examples(model.read_inputs(learned), learned.tags)
    steps = arguments.epochs * len(batch_plan(windows.packed.lengths, 32))
    model.compile(optimizer=AdamW(WarmupLinearDecay(arguments.rate, steps, steps // 10)))
    dataset = model.dataset(windows, targets, batch_size=32, shuffle=True, seed=arguments.seed)
    model.fit(dataset, epochs=arguments.epochs, verbose=2)
    arguments.run.mkdir(parents=True)
    save_adapters(model, arguments.run / "model", BASE)
    # What is measured is what is shipped: half precision, read back.
    shipped = EntityRecognizer.from_pretrained(arguments.run / "model")
    scores = {
        name: {k: v for k, v in measure_entities(shipped, sentences).items() if k in SHOWN}
        for name, sentences in measured.items()
    }
    print(json.dumps(scores), flush=True)
    write_atomically(arguments.run / "scores.json", json.dumps(scores, indent=1) + "\n")


if __name__ == "__main__":
    main()
