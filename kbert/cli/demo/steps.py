"""The steps of `kbert demo`, each with its description, its time and the paths of its files."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from kbert.cli.demo.parts import (
    ENTITY_MODEL,
    QUESTION_MODEL,
    ask_questions,
    demo_translation,
    find_names,
)
from kbert.cli.results.evaluation import show_labels
from kbert.data.classification.text_pairs import read_text_examples
from kbert.data.samples import sample_path
from kbert.serving.export.export import export
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.run import train
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import REPORT, load_run

ENCODER = "all-MiniLM-L6-v2"
PARTS = ("train", "validation", "test")
# Few examples and short texts: smaller batches and a higher learning rate than for large data.
SETTINGS: dict[str, Any] = {
    "epochs": 5,
    "batch_size": 16,
    "learning_rate": 2e-4,
    "max_sequence_length": 64,
}
QUESTIONS = (
    "where on earth is my parcel?? it should have been here on tuesday",
    "You charged my card twice for the same order.",
    "I'd like to send the boots back, they are too small.",
    "The new site won't let me log in any more.",
    "Does the lamp come with a bulb, and can it be dimmed?",
    "Best shop I've ever ordered from - thanks a lot!",
)


def run_demo(output: Path, console: Console | None = None) -> dict[str, Any]:
    """Trains, exports and queries a classifier; queries the bundled models; trains a translator.

    Returns the metrics of the test messages, the folders of run and export, the answers; the
    metrics of the sample questions and sentences; and the return value of `demo_translation`.

    Raises:
        OSError: The encoder is not installed and cannot be fetched; the message says how.
    """
    console = Console(highlight=False) if console is None else console
    begin = time.perf_counter()
    console.print(
        "[bold]kbert demo[/bold]: sort messages to a shop's support by topic.\n"
        f"An encoder that has read much English ([cyan]{ENCODER}[/cyan], 22 million weights) "
        "learns the topics from a few hundred examples.\n"
    )
    with _step(console, 1, "Look at the examples"):
        _show_examples(console)
    with _step(console, 2, f"Fine-tune: {SETTINGS['epochs']} passes over the training messages"):
        run = load_run(train(demo_config(output)))
        report = json.loads((run.directory / REPORT).read_text(encoding="utf-8"))
        console.print(f"{report['steps']} steps, {report['parameters']:,} weights.")
        console.print(f"Files: {run.directory}/ (model/, metrics.json, config.yaml, log.txt)")
    with _step(console, 3, "Measure on messages that it has not seen"):
        show_labels(run.metrics["final"]["test"], console)
    with _step(console, 4, "Export: a SavedModel that takes raw strings, for TensorFlow Serving"):
        exported = export(load_model(run.directory), output / "exports", name="support")
        console.print(f"Files: {exported}/")
    with _step(console, 5, "Ask the export, in a new process that knows nothing but its files"):
        answers = ask_in_new_process(exported, QUESTIONS)
        _show_answers(console, answers)
    with _step(console, 6, f"Questions about a text: {QUESTION_MODEL}, which comes with kbert"):
        questions = ask_questions(console)
    with _step(console, 7, f"Names in a text: {ENTITY_MODEL}, which comes with kbert"):
        names = find_names(console)
    with _step(console, 8, "Translate: a Transformer learns a little German"):
        translation = demo_translation(output, console)
    seconds = time.perf_counter() - begin
    _show_what_next(console, seconds, run.directory, exported, translation["run"])
    return {
        "test": run.metrics["final"]["test"],
        "run": run.directory,
        "export": exported,
        "answers": answers,
        "questions": questions,
        "names": names,
        "translation": translation,
        "seconds": seconds,
    }


def demo_config(output: Path) -> RunConfig:
    """Returns the configuration of the demo's run, in the folder `output`."""
    return RunConfig.from_dict(
        {
            **{part: str(sample_path(f"support/{part}.tsv")) for part in PARTS},
            "encoder": ENCODER,
            "output": str(output / "run"),
            "overwrite": True,
            **SETTINGS,
        }
    )


def ask_in_new_process(exported: Path, questions: tuple[str, ...]) -> list[dict[str, Any]]:
    """Queries an export with `kbert predict`, in a process of its own; one answer per text.

    Raises:
        RuntimeError: The process failed; its message is in the error.
    """
    # The same interpreter, so that the same kbert is used wherever it is installed.
    command = [sys.executable, "-m", "kbert.cli.main", "predict", str(exported)]
    lines = "".join(f"{question}\n" for question in questions)
    done = subprocess.run(command, input=lines, capture_output=True, text=True, encoding="utf-8")
    if done.returncode:
        raise RuntimeError(f"`{' '.join(command)}` failed: {done.stderr.strip()[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def _step(console: Console, number: int, title: str) -> Iterator[None]:
    console.rule(f"[bold]{number}. {title}", align="left")
    begin = time.perf_counter()
    yield
    console.print(f"[dim]{time.perf_counter() - begin:.1f} s[/dim]\n")


def _show_what_next(
    console: Console, seconds: float, run: Path, exported: Path, translator: Path
) -> None:
    console.print(
        f"[bold]Done in {seconds:.0f} s.[/bold] Now try, {_activated()}\n"
        f'  kbert predict {run} --text "your own message"\n'
        f'  kbert predict {translator} --text "Tom often reads a book in the park."\n'
        f'  kbert predict {QUESTION_MODEL} --question "..." --context-file article.txt --show\n'
        f"  kbert info {exported}\n"
        "  kbert train --help     (your own data: a file with the columns text and label)",
        soft_wrap=True,  # a wrapped command cannot be copied
    )


def _activated() -> str:
    """Returns the words on activating the environment of `kbert`, if it is not active."""
    folder = Path(sys.prefix)
    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return "for example,"
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    return f"after `source {shown}/bin/activate`,"


def _show_examples(console: Console) -> None:
    path = sample_path("support/train.tsv")
    examples = read_text_examples(path)
    labels = [str(label) for label in examples.labels or []]
    table = Table("topic", "messages", "for example")
    table.columns[1].justify = "right"
    for label in sorted(set(labels)):
        own = [text for text, one in zip(examples.text_a, labels) if one == label]
        table.add_row(label, str(len(own)), min(own, key=lambda text: abs(len(text) - 60)))
    console.print(table)
    console.print(f"Files: {path.parent}/ (train.tsv, validation.tsv, test.tsv)")


def _show_answers(console: Console, answers: list[dict[str, Any]]) -> None:
    table = Table("message", "topic", "probability")
    table.columns[2].justify = "right"
    for question, answer in zip(QUESTIONS, answers):
        table.add_row(question, answer["label"], f"{answer['score']:.2f}")
    console.print(table)
