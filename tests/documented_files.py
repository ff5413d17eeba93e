"""Files of the names that the pages' commands use, made in the working directory."""

import csv
import gzip
import itertools
import json
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from kbert.data.samples import sample_path
from kbert.data.samples.drawn_shapes import CAPTIONS_FILE, IMAGES_FOLDER, write_drawn_shapes
from tests.checkpoints.synthetic_marian import write_marian

BIOMEDICAL = "runs/biomedical/data"


def write_documented_files(vocabulary: Path) -> None:
    """Writes all of them; `vocabulary` is the published one of all-MiniLM-L6-v2."""
    topics = [line.split("\t") for line in sample_path("support/train.tsv").read_text().split("\n")]
    texts = [row for row in topics[1:] if len(row) == 2]
    shutil.copy(vocabulary, "vocab.txt")
    _texts(texts)
    _pairs([first for first, _ in texts[:25]])
    _questions_and_entities()
    _translations()
    _corpora([text for text, _ in texts[:160]])
    _images()


def write_large_files() -> None:
    """Replaces what long commands read by as much as these ask for: made-up words, and links."""
    draw = random.Random(1)
    syllables = [first + last for first in "bdfgklmnprstvz" for last in ("a", "en", "i", "or", "u")]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 4))) for _ in range(40_000)]
    lines = [" ".join(words[i : i + 10]) for i in range(0, len(words), 10)]
    corpora = [*Path("corpus").iterdir(), *Path("papers").iterdir()]
    pairs = [Path(f"train.{name}") for name in ("en", "de", "en.gz", "de.gz")]
    for path in [*corpora, *pairs, *Path("runs").glob("**/corpus.txt")]:
        _written(str(path), lines)
    mails = (json.dumps({"id": i, "text": words[i % 100]}) for i in range(57_345))
    _written("mails.jsonl", mails)  # from there on a file has eight parts
    images = sorted(Path("photos").iterdir())
    rows = ["image,caption"]
    for number in range(8000):
        name = f"{number}.png"
        Path("photos", name).hardlink_to(images[number % len(images)])
        rows.append(f"{name},{lines[number % len(lines)]}")
    _written("captions.csv", rows)


def _written(path: str, lines: Iterable[str]) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    content = ("\n".join(lines) + "\n").encode()
    Path(path).write_bytes(gzip.compress(content) if path.endswith(".gz") else content)


def _texts(texts: list[list[str]]) -> None:
    rows = [f"{text}\t{label}\t{label}|mail" for text, label in texts[:48]]
    for name in ("train.tsv", "dev.tsv", "test.tsv"):
        _written(name, ["text\tlabel\tlabels", *rows])
    mails = [{"id": i, "text": text} for i, (text, _) in enumerate(texts[:20])]
    _written("mails.jsonl", map(json.dumps, mails))
    pd.DataFrame(mails).to_parquet("texts.parquet")
    Path("answers").mkdir()


def _pairs(texts: list[str]) -> None:
    pairs = [f"{a}\t{b}" for a, b in itertools.pairwise(texts)]
    _written("pairs.tsv", ["anchor\tpositive", *pairs])
    classes = [f"{pair}\t{i % 2}" for i, pair in enumerate(pairs)]
    for name in ("rte", "rte-dev", "snli-mnli", "mnli", "qnli", "sick"):
        _written(f"{name}.tsv", ["sentence1\tsentence2\tlabel", *classes])
    for name in ("rte", "mnli"):
        _written(f"{name}.yaml", [f"train: {name}.tsv"])
    names = itertools.cycle(("entailment", "not_entailment"))
    glue = [f"{i}\t{pair}\t{name}" for i, (pair, name) in enumerate(zip(pairs, names))]
    for part in ("train", "dev", "test"):
        _written(f"glue/RTE/{part}.tsv", ["index\tsentence1\tsentence2\tlabel", *glue])
    scored = [f"{pair}\t{i % 6}" for i, pair in enumerate(pairs)]
    _written("STS-B/dev.tsv", ["sentence1\tsentence2\tscore", *scored])


def _questions_and_entities() -> None:
    questions = sample_path("questions/questions.json").read_text()
    for name in ("train", "dev", "train-v1.1", "dev-v1.1"):
        _written(f"{name}.json", [questions])
    for name in ("train", "validation", "test"):
        _written(f"{BIOMEDICAL}/{name}.json", [questions])
    article = "Ann wrote the book in 1901, in York."
    _written("article.txt", [article])
    _written("questions.tsv.gz", ["question\tcontext", f"Who wrote it?\t{article}"] * 2)
    sentences = sample_path("entities/sentences.conll").read_text()
    for name in ("train", "dev", "test"):
        _written(f"{name}.conll", [sentences])
    _written("ner.yaml", ["task: ner", "train: train.conll", "validation: dev.conll"])


def _translations() -> None:
    translations = sample_path("translation/train.tsv").read_text().strip().split("\n")[1:]
    for part, language in itertools.product(("train", "val", "test"), (0, 1)):
        lines = [pair.split("\t")[language] for pair in translations[:120]]
        for ending in ("", ".gz"):
            _written(f"{part}.{('en', 'de')[language]}{ending}", lines)
    write_marian(Path("opus-mt-en-de"))


def _corpora(texts: list[str]) -> None:
    corpus = [line for text in texts for line in (text, "" if len(text) % 5 else text)]
    for name in ("corpus/part-1.txt", "papers/part-1.txt.gz", "held-out.txt"):
        _written(name, corpus)
    for folder in ("runs/data", BIOMEDICAL):
        for name in ("corpus.txt", "held-out.txt"):
            _written(f"{folder}/{name}", corpus)


def _images() -> None:
    """Ten images to learn from and three others, each in several rows of captions."""
    for name, photos, count in (("captions", "photos", 10), ("others", "other-photos", 3)):
        drawn = Path(f"drawn-{name}")
        write_drawn_shapes(drawn, count, size=64)
        shutil.move(drawn / CAPTIONS_FILE, f"{name}.csv")
        shutil.move(drawn / IMAGES_FOLDER, photos)
        with open(f"{name}.csv", encoding="utf-8") as file:
            images = sorted({row["image"] for row in csv.DictReader(file)})
    for image, name in zip(images, ("photo.jpg", "another.png")):
        shutil.copy(Path("other-photos", image), name)  # its bytes say that it is a PNG
