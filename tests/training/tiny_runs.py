"""A model that trains in a second: a vocabulary of a few words, one narrow encoder block."""

from pathlib import Path
from typing import Any

from kbert.models.bert import Bert
from kbert.training.run_config import RunConfig

WORDS = ("good fine bad dull the a film plot was very it and not rain sun blue red one two").split()
TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, "##s", "."]


def write_vocabulary(folder: Path) -> Path:
    """vocab.txt."""
    file = folder / "vocab.txt"
    file.write_text("".join(f"{token}\n" for token in TOKENS), encoding="utf-8")
    return file


def write_encoder(folder: Path, vocabulary: Path) -> Path:
    """An encoder with random weights, in kbert's format."""
    encoder = Bert(len(TOKENS), 16, 1, 2, 32, max_sequence_length=24, initializer_range=0.5)
    return encoder.save_pretrained(folder / "encoder", vocabulary=vocabulary)


def write_texts(folder: Path) -> dict[str, str]:
    """Reviews with labels: 24 to train on, 8 to validate on, 8 to test on."""
    good = [f"the {thing} was {word}" for thing in ("film", "plot") for word in ("good", "fine")]
    bad = [f"the {thing} was {word}" for thing in ("film", "plot") for word in ("bad", "dull")]
    ends = ("", " and very blue", " .", " it was one", " and it was not red", " two")
    labelled = [(text, "up") for text in good] + [(text, "down") for text in bad]
    rows = [(text + end, label) for end in ends for text, label in labelled]
    parts = {"train": rows[:24], "validation": rows[24:32], "test": rows[32:40]}
    for part, some in parts.items():
        lines = "".join(f"{text}\t{label}\n" for text, label in some)
        (folder / f"{part}.tsv").write_text(f"text\tlabel\n{lines}", encoding="utf-8")
    return {part: str(folder / f"{part}.tsv") for part in parts}


def write_pairs(folder: Path) -> str:
    """Pairs of texts with scores."""
    pairs = [(a, b, 5.0 if a == b else 1.0) for a in WORDS[:4] for b in WORDS[:4]]
    lines = "".join(f"{a}\tthe {b}\t{score}\n" for a, b, score in pairs)
    file = folder / "pairs.tsv"
    file.write_text(f"sentence1\tsentence2\tscore\n{lines}", encoding="utf-8")
    return str(file)


def write_choices(folder: Path) -> str:
    """Contexts with two choices."""
    lines = [
        f'{{"context": "the {a}", "choices": ["was {a}", "was {b}"], "label": {i % 2}}}\n'
        for i, (a, b) in enumerate(zip(WORDS[:8], WORDS[8:16]))
    ]
    file = folder / "choices.jsonl"
    file.write_text("".join(lines), encoding="utf-8")
    return str(file)


class Tiny:
    """The files of a tiny run in a folder, and configurations with them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.vocabulary = write_vocabulary(folder)
        self.encoder = write_encoder(folder, self.vocabulary)
        self.texts = write_texts(folder)
        self.pairs = write_pairs(folder)
        self.choices = write_choices(folder)

    def values(self, output: Path, **others: Any) -> dict[str, Any]:
        """The keys of a classification run."""
        return {
            "train": self.texts["train"],
            "validation": self.texts["validation"],
            "encoder": str(self.encoder),
            "output": str(output),
            "max_sequence_length": 16,
            "batch_size": 8,
            "epochs": 2,
            "learning_rate": 0.01,
            **others,
        }

    def config(self, output: Path, **others: Any) -> RunConfig:
        """The configuration of a classification run."""
        return RunConfig.from_dict(self.values(output, **others))
