"""Models of four tasks as exports, and texts to ask them: what `serving_load.py` asks."""

import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kbert.data.samples import sample_path
from kbert.models.encoder_decoders.transformer import Transformer
from kbert.serving.export.export import export
from kbert.serving.portable.onnx_export import export_onnx
from kbert.tasks.classification.model import Classifier
from kbert.tasks.load import load
from kbert.tasks.ner.model import EntityRecognizer
from kbert.tasks.question_answering.model import QuestionAnswerer
from kbert.tasks.translation.model import Translator
from kbert.text.subword_training import train_subwords

Rows = list[dict[str, str]]
_READERS: dict[str, Callable[[str], Any]] = {
    "classification": lambda encoder: Classifier.from_pretrained(encoder, ["no", "yes"]),
    "questions": QuestionAnswerer.from_pretrained,
    "names": lambda encoder: EntityRecognizer.from_pretrained(encoder, ["O", "B-x", "I-x"]),
}
TASKS = ("classification", "questions", "names", "translation")


def written(task: str, base: Path, translator: Path | None) -> Rows:
    """Writes an export of a task below `base`, under the task's name.

    Where transformers has such a model, the same weights are written beside `base` for it, in the
    folder huggingface/TASK, and for ONNX Runtime in onnx/TASK.

    Args:
        task: One of `TASKS`.
        base: The folder of exports.
        translator: A translator's folder; one with random weights, which says little, if None.

    Returns:
        Rows to ask it: name of each input -> text.
    """
    if task == "translation":
        model = _random_translator(base.parent) if translator is None else load(str(translator))
        export(model, base, task)
        return [{"text": text} for text, _ in _pairs()]
    # The heads are random: the times are those of trained ones.
    reader: Any = _READERS[task]("all-MiniLM-L6-v2")
    export(reader, base, task)
    reader.save_pretrained(base.parent / "huggingface" / task, format="huggingface")
    export_onnx(reader, base.parent / "onnx", task)
    return _questions() if task == "questions" else [{"text": text} for text in sentences()]


def columns(rows: Rows) -> Mapping[str, list[str]]:
    """Rows as the inputs of a signature."""
    return {name: [row[name] for row in rows] for name in rows[0]}


def sentences() -> list[str]:
    """Short texts of real lengths."""
    text = sample_path("entities/sentences.conll").read_text(encoding="utf-8")
    sentences = [block.splitlines() for block in text.strip().split("\n\n")]
    return [" ".join(line.split("\t")[0] for line in lines) for lines in sentences]


def _questions() -> Rows:
    found = json.loads(sample_path("questions/questions.json").read_text(encoding="utf-8"))
    return [
        {"question": one["question"], "context": part["context"]}
        for article in found["data"]
        for part in article["paragraphs"]
        for one in part["qas"]
    ]


def _pairs() -> list[list[str]]:
    with sample_path("translation/train.tsv").open(encoding="utf-8", newline="") as file:
        return [row[:2] for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)][1:]


def _random_translator(folder: Path) -> Translator:
    lines = [line for pair in _pairs() for line in pair]
    pieces = train_subwords([lines], folder / "pieces.model", vocabulary_size=700)
    # Random models seldom end: the longest translation is that of a short sentence.
    options = {"beam_size": 4, "length_ratio": 0.0, "length_extra": 12}
    return Translator(Transformer.from_size("tiny", len(pieces)), pieces, pieces, **options)
