"""Tasks on sentences and pairs, each as JSON Lines that `kbert train` reads."""

import csv
import gzip
import json
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from kbert.storage.files import write_atomically

# Of RTE's and CoLA's numbers.
_RTE = {"0": "entailment", "1": "not_entailment"}
_COLA = {"0": "unacceptable", "1": "acceptable"}
Example = dict[str, str]


def _tsv(path: Path, first: str, second: str, label: str) -> Iterator[Example]:
    """The pairs of a TSV file with a header and without quotes."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            yield {"text_a": row[first], "text_b": row[second], "label": row[label].lower()}


def _numbered(path: Path) -> Iterator[Example]:
    """The pairs of a JSON object of numbers to text_a, text_b and label."""
    for found in json.loads(gzip.decompress(path.read_bytes())).values():
        yield {key: found[key] for key in ("text_a", "text_b", "label")}


def _rte(folder: Path, part: str) -> Iterator[Example]:
    for row in _tsv(folder / "RTE" / f"{part}.tsv", "sentence1", "sentence2", "label"):
        yield row | {"label": _RTE[row["label"]]}


def _sick(folder: Path, part: str) -> Iterator[Example]:
    name = "SICK_train.txt" if part == "train" else "SICK_test_annotated.txt"
    return _tsv(folder / "SICK" / name, "sentence_A", "sentence_B", "entailment_judgment")


def _cola(folder: Path, part: str) -> Iterator[Example]:
    for line in (folder / "CoLA" / f"{part}.tsv").read_text(encoding="utf-8").splitlines():
        _, label, _, text = line.split("\t")
        yield {"text": text, "label": _COLA[label]}


def _subset(folder: Path, name: str, part: str) -> Iterator[Example]:
    split = "train" if part == "train" else "dev"
    return _numbered(folder / f"{name}-subset" / f"{split}.json.gz")


def _snli(folder: Path) -> Iterator[Example]:
    return _tsv(folder / "SNLI-subset" / "train.tsv.gz", "sentence1", "sentence2", "label")


def examples(task: str, part: str, glue: Path) -> Iterable[Example]:
    """The examples of "train" or of "test": what has no labelled test set has its dev set."""
    if task == "snli-mnli" and part == "train":
        return chain(_snli(glue), _subset(glue, "MNLI", "train"))
    if task in ("mnli", "qnli", "snli-mnli"):
        return _subset(glue, task[-4:].upper(), part)
    if task == "sick":
        return _sick(glue, part)
    return {"rte": _rte, "cola": _cola}[task](glue, "train" if part == "train" else "dev")


def written(task: str, part: str, glue: Path, folder: Path) -> Path:
    """The examples as a file in a folder, which is made if it is not there."""
    path = folder / f"{task}-{part}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(row, ensure_ascii=False) for row in examples(task, part, glue))
        write_atomically(path, "".join(f"{line}\n" for line in lines))
    return path
