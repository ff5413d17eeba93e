"""A model that trains in a second: a vocabulary of a few words, one narrow encoder block."""

import json
from pathlib import Path
from typing import Any

from kbert.models.bert import Bert
from kbert.training.config.finetuning_config import RunConfig

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


def write_questions(folder: Path, name: str, unanswerable: bool = False) -> str:
    """Questions for words of their texts; with `unanswerable` also for words that are not there."""
    rows = []
    for number, word in enumerate(WORDS[:12]):
        context = f"the {word} film was very red and it was one plot"
        answer = [] if unanswerable and number % 3 == 0 else [{"text": word, "answer_start": 4}]
        asked = "sun" if not answer else word
        rows.append({"id": f"q{number}", "question": asked, "context": context, "answers": answer})
    file = folder / f"{name}.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def write_sentences(folder: Path) -> str:
    """Sentences whose colours and weathers are entities, in CoNLL columns."""
    lines = []
    for word in ("sun", "rain"):
        for colour in ("blue", "red"):
            lines += ["the O", f"{colour} B-COLOUR", f"{word} B-SKY", "was O", "one O", ""]
    file = folder / "sentences.conll"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
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
        self.questions = write_questions(folder, "questions")
        self.unanswerable = write_questions(folder, "unanswerable", unanswerable=True)
        self.sentences = write_sentences(folder)

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

    def reading(self, output: Path, task: str, file: str, **others: Any) -> RunConfig:
        """The configuration of a run that reads, with windows that a text does not fit."""
        values = {"task": task, "train": file, "validation": file, "stride": 2}
        if task != "ner":
            values["max_question_length"] = 3
        return self.config(output, **{**values, "max_sequence_length": 12, **others})

    def config(self, output: Path, **others: Any) -> RunConfig:
        """The configuration of a classification run."""
        return RunConfig.from_dict(self.values(output, **others))
