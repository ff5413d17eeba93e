"""From raw strings to class names over the dev set of SST-2: sentences a second.

    python benchmarks/inference.py GLUE_DIRECTORY --classifier CLASSIFIER

Real lengths, batches of 32 in the order of the file. kbert runs its SavedModel, `predict`, and its
network in ONNX Runtime behind Hugging Face's `tokenizers`; like that, transformers tokenizes with
its fast tokenizer and pads to the longest of the batch; keras-hub and Model Garden run their own
preprocessing, which pads to a fixed length (128). All have the same weights, written by kbert as a
Hugging Face folder. Without --classifier the head is random: the times are the same, the accuracies
mean nothing.
"""

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from side_by_side.contender import Contender, play, ratio
from side_by_side.results import parser, write

from kbert.data.classification.glue_tasks import GLUE_TASKS, read_glue
from kbert.tasks.classification.model import Classifier

WORKS = ("classify",)
LENGTH = 128


def prepare(folder: Path, classifier: Path | None, texts: list[str]) -> dict[str, Any]:
    """Writes the texts, and the classifier in both formats; returns what contenders must know."""
    if classifier is None:
        model = Classifier.from_pretrained("all-MiniLM-L6-v2", GLUE_TASKS["sst2"].labels)
    else:
        model = Classifier.from_pretrained(classifier)
    model.save_pretrained(folder / "kbert")
    model.save_pretrained(folder / "huggingface", format="huggingface")
    (folder / "texts.json").write_text(json.dumps(texts))
    return {
        "data": str(folder / "texts.json"),
        "length": LENGTH,
        "lowercase": model.tokenizer.lowercase,
    }


def contenders(folder: Path, settings: dict[str, Any], python: str) -> list[Contender]:
    """All contenders, kbert's and transformers' float32 first."""
    made = []
    for dtype in ("float32", "bfloat16"):
        for way in ("SavedModel", "predict", "ONNX"):
            if (way, dtype) == ("ONNX", "bfloat16"):
                continue
            options = {**settings, "model": str(folder / "kbert"), "dtype": dtype, "way": way}
            module = "contenders.kbert_inference"
            made.append(Contender(f"kbert {way} {dtype}", module, WORKS, **options))
    settings = {**settings, "model": str(folder / "huggingface")}
    for way in ("float32", "autocast", "bfloat16"):
        module = "peers.torch_inference"
        made.append(Contender(f"transformers {way}", module, WORKS, python, **settings, way=way))
    for policy in ("float32", "mixed_bfloat16"):
        for name, module in (("keras-hub", "keras_hub"), ("Model Garden", "model_garden")):
            module = f"peers.{module}_inference"
            made.append(Contender(f"{name} {policy}", module, WORKS, **settings, policy=policy))
    return made


def share_of_same(found: list[str], expected: list[str]) -> float:
    """The share of places with the same class, 0 to 1."""
    return round(sum(a == b for a, b in zip(found, expected, strict=True)) / len(expected), 4)


def rows_of(played: list[Contender], labels: list[str]) -> dict[str, list[dict[str, Any]]]:
    """A row for each contender, and the comparisons that matter."""
    run = {c.name: c for c in played if c.median("classify")}
    base, own = run.get("transformers float32"), run.get("kbert SavedModel float32")
    speed: dict[str, float] = {}
    rows: list[dict[str, Any]] = []
    for name, contender in run.items():
        classes = contender.facts["labels"]
        speed[name] = len(labels) / (1e-3 * (contender.median("classify") or 1e30))
        row = {"contender": name, "sentences_per_second": round(speed[name], 1)}
        row["accuracy"] = share_of_same(classes, labels)
        row["same_as_kbert"] = share_of_same(classes, own.facts["labels"]) if own else None
        row["times_transformers_float32"] = ratio(base, contender, "classify") if base else None
        rows.append(row)
    ours = [name for name in run if name.startswith("kbert")]
    best = max(ours, key=lambda name: speed[name], default=None)
    names = [name for name in ("kbert SavedModel float32", best) if name in run]
    summary = [row for name in dict.fromkeys(names) for row in rows if row["contender"] == name]
    return {"summary": summary, "rows": rows}


def main() -> None:
    """Runs all contenders."""
    arguments_parser = parser("inference", __doc__)
    arguments_parser.add_argument("directory", type=Path, help="folder with SST-2/")
    arguments_parser.add_argument("--classifier", type=Path, help="one of kbert, without adapters")
    arguments_parser.add_argument("--repeats", type=int, default=1, help="passes a turn")
    arguments_parser.add_argument("--sentences", type=int, help="only the first so many")
    arguments: argparse.Namespace = arguments_parser.parse_args()
    examples = read_glue("sst2", arguments.directory, "dev")
    texts = list(examples.text_a)[: arguments.sentences]
    labels = [str(label) for label in examples.labels or []][: arguments.sentences]
    with tempfile.TemporaryDirectory() as name:
        settings = prepare(Path(name), arguments.classifier, texts)
        played = contenders(Path(name), settings, arguments.peer_python)
        play(played, [{"work": "classify", "repeats": arguments.repeats}], arguments.rounds)
    facts = {key: getattr(arguments, key) for key in ("rounds", "repeats")}
    facts |= {"sentences": len(texts), "random_head": arguments.classifier is None}
    write(arguments.output, rows_of(played, labels), played, facts)


if __name__ == "__main__":
    main()
