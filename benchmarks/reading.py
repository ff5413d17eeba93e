"""From questions and whole articles to answers: questions a second, and memory.

    python benchmarks/reading.py covid-qa.json --model READER --questions 20

Articles of some 23,500 characters, cut into windows of 384 tokens that share 128; one question a
request. kbert runs its SavedModel; transformers the windows of its tokenizer, up to 32 in a batch.
Both have the same weights, written by kbert as a Hugging Face folder. Memory is what a process
holds when the model is loaded, and at its peak. With --every, all questions
of the file go through kbert's export once, and the answers are measured: a result of its own, with
its file, model and date, in `reading_every.json`.
"""

import argparse
import json
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import Any

from side_by_side.contender import Contender, play, ratio
from side_by_side.machine import machine
from side_by_side.results import keep_row, parser, write

from kbert import __version__
from kbert.data.questions.squad import read_squad
from kbert.metrics.answers import squad_metrics
from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from kbert.tasks.question_answering.model import QuestionAnswerer

WORKS = ("answer",)
EVERY_KEY = ("file", "model")


def contenders(folder: Path, python: str) -> list[Contender]:
    """kbert and transformers, in float32 and in bfloat16."""
    settings: dict[str, Any] = {"data": str(folder / "rows.json"), "length": 384, "stride": 128}
    made = []
    for dtype in ("float32", "bfloat16"):
        model = QuestionAnswerer.from_pretrained(folder / "kbert", dtype=dtype)
        options = {**settings, "export": str(export(model, folder / dtype))}
        made.append(Contender(f"kbert {dtype}", "contenders.kbert_reading", WORKS, **options))
    settings["model"] = str(folder / "huggingface")
    for way in ("float32", "autocast", "bfloat16"):
        module = "peers.torch_reading"
        made.append(Contender(f"transformers {way}", module, WORKS, python, **settings, way=way))
    return made


def rows_of(played: list[Contender], count: int) -> list[dict[str, Any]]:
    """A row for each contender."""
    run = {c.name: c for c in played if c.median("answer")}
    base, own = run.get("transformers float32"), run.get("kbert float32")
    rows = []
    for name, contender in run.items():
        answers = contender.facts["answers"]
        same = [a == b for a, b in zip(answers, own.facts["answers"])] if own else []
        row: dict[str, Any] = {"contender": name}
        row["questions_per_second"] = round(1e3 * count / (contender.median("answer") or 1e30), 3)
        row["same_as_kbert"] = round(sum(same) / count, 4)
        row["times_transformers_float32"] = ratio(base, contender, "answer") if base else None
        row["loaded_mib"] = contender.facts["loaded_mib"]
        row["peak_mib"] = contender.answers["answer"][0]["peak_mib"]
        rows.append(row)
    return rows


def every(model: QuestionAnswerer, folder: Path, file: Path) -> dict[str, Any]:
    """All questions through the export."""
    examples = read_squad(file)
    exported = load_export(export(model, folder))
    start = time.perf_counter()
    found = exported.predict(examples.questions, examples.contexts, batch_size=4)
    seconds = time.perf_counter() - start
    answers = {name: text.decode() for name, text in zip(examples.ids, found["answer"])}
    cut = [c[s:e] for c, s, e in zip(examples.contexts, found["start"], found["end"])]
    return {
        "questions": len(examples),
        "answered": sum(map(bool, answers.values())),
        "at_their_place": sum(a == b for a, b in zip(cut, answers.values())),
        "questions_per_second": round(len(examples) / seconds, 2),
        **squad_metrics(examples.answer_texts, answers),
    }


def main() -> None:
    """Runs all contenders."""
    arguments_parser = parser("reading", __doc__)
    arguments_parser.add_argument("file", type=Path, help="questions in SQuAD's layout")
    arguments_parser.add_argument("--model", type=Path, required=True, help="saved by kbert")
    arguments_parser.add_argument("--questions", type=int, default=20, help="questions a turn")
    arguments_parser.add_argument("--every", action="store_true")
    arguments: argparse.Namespace = arguments_parser.parse_args()
    model = QuestionAnswerer.from_pretrained(arguments.model)
    examples = read_squad(arguments.file)
    chosen = range(0, len(examples), len(examples) // arguments.questions)
    rows = [(examples.questions[i], examples.contexts[i]) for i in chosen[: arguments.questions]]
    if arguments.every:
        row = {"file": arguments.file.name, "model": arguments.model.name, "kbert": __version__}
        row |= {"measured": date.today().isoformat(), "cores": machine()["cores"]}
        with tempfile.TemporaryDirectory() as name:
            row |= every(model, Path(name), arguments.file)
        output = arguments.output
        keep_row(output.with_name(f"{output.stem}_every.json"), row, EVERY_KEY)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_pretrained(folder / "kbert")
        model.save_pretrained(folder / "huggingface", format="huggingface")
        (folder / "rows.json").write_text(json.dumps(rows))
        played = contenders(folder, arguments.peer_python)
        play(played, [{"work": "answer", "repeats": 1}], arguments.rounds)
    facts = {"rounds": arguments.rounds, "questions": len(rows)}
    write(arguments.output, {"rows": rows_of(played, len(rows))}, played, facts)


if __name__ == "__main__":
    main()
