"""The steps of `kbert demo`, each with its description, its time and the paths of its files."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kbert.cli.actions.caption_demo import SHADES, demo_captioning
from kbert.cli.actions.evaluation import show_labels
from kbert.data.classification.text_pairs import read_text_examples
from kbert.data.entities.tagged_sentences import read_conll
from kbert.data.questions.squad import read_squad
from kbert.data.samples import sample_path
from kbert.data.translation.parallel_text import read_parallel_tsv
from kbert.extras import install_extra
from kbert.serving.export.export import export
from kbert.tasks.load import load
from kbert.tasks.ner.task import measure_entities
from kbert.tasks.question_answering.task import measure_answers
from kbert.tasks.registry import show_answer
from kbert.tasks.translation.alignment import alignment_of_text
from kbert.training.config.finetuning_config import RunConfig
from kbert.training.config.translation_config import TranslationConfig
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
    """Trains, exports and queries a classifier; queries the bundled models; trains two toys.

    Raises an OSError that says how, if the encoder is not installed and cannot be fetched.
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
    with _step(console, 9, "Caption: a network learns to look at drawn shapes"):
        captioning = demo_captioning(output, console)
    seconds = time.perf_counter() - begin
    toys = (translation["run"], captioning["run"])
    _show_what_next(console, seconds, run.directory, exported, *toys)
    found = {"test": run.metrics["final"]["test"], "run": run.directory, "export": exported}
    found |= {"answers": answers, "questions": questions, "names": names}
    found |= {"captioning": captioning, "seconds": seconds}
    return {**found, "translation": translation}


def demo_config(output: Path) -> RunConfig:
    """Returns the configuration of the demo's run, in the folder `output`."""
    parts = {part: str(sample_path(f"support/{part}.tsv")) for part in PARTS}
    place = {"encoder": ENCODER, "output": str(output / "run"), "overwrite": True}
    return RunConfig.from_dict({**parts, **place, **SETTINGS})


def ask_in_new_process(exported: Path, questions: tuple[str, ...]) -> list[dict[str, Any]]:
    """Queries an export with `kbert predict`, in a process of its own; one answer per text."""
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
    console: Console, seconds: float, run: Path, exported: Path, translator: Path, captioner: Path
) -> None:
    console.print(
        f"[bold]Done in {seconds:.0f} s.[/bold] Now try, {_activated()}\n"
        f'  kbert predict {run} --text "your own message"\n'
        f'  kbert predict {translator} --text "Tom often reads a book in the park."\n'
        f"  kbert plot {captioner} --image your.png --output caption.png\n"
        f'  kbert predict {QUESTION_MODEL} --question "..." --context-file article.txt --show\n'
        f"  kbert info {exported}\n"
        "  kbert train --help     (your own data: a file with the columns text and label)",
        soft_wrap=True,  # a wrapped command cannot be copied
    )


def _activated() -> str:
    """Returns the words on activating the environment of `kbert`, if it is not active."""
    folder, here = Path(sys.prefix), Path.cwd()
    if sys.prefix == sys.base_prefix or os.environ.get("VIRTUAL_ENV") == sys.prefix:
        return "for example,"
    shown = folder.relative_to(here) if folder.is_relative_to(here) else folder
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


# One layer on each side and a piece for nearly every word: the toy learns in half a minute what
# larger models also learn.
TRANSLATOR_SETTINGS: dict[str, Any] = {
    "vocabulary_size": 700,
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "batch_tokens": 512,
    "epochs": 30,
    "average": 5,
    "learning_rate": 3e-3,
    "warmup_steps": 200,
}
# Sentences of test.tsv to show: German has another word order in each.
SHOWN = (
    "My parents do not draw a picture in the living room in the evening.",
    "Yesterday my mother visited the museum in the city.",
    "Is Anna feeding the dog in the kitchen?",
)
QUESTION_MODEL = "minilm-squad"
ENTITY_MODEL = "minilm-ner"
# Indices in the samples: questions of three texts, and sentences with several types of names.
_SHOWN_QUESTIONS = (6, 13, 18)
_SHOWN_SENTENCES = (3, 11, 17)


def demo_translation(output: Path, console: Console) -> dict[str, Any]:
    """Trains a toy translator, evaluates it, and shows translations of unseen sentences."""
    console.print(
        "A toy: it learns 600 sentences about a small world. It translates new ones made "
        "of the same words, and knows nothing of any other."
    )
    run = load_run(train(translation_config(output)))
    metrics = run.metrics["final"]["test"]
    pairs = read_parallel_tsv(sample_path("translation/test.tsv"))
    right = dict(zip(pairs.sources, pairs.targets or []))
    model = load_model(run.directory)
    translations = model.translations(SHOWN)
    table = Table(show_header=False)
    for text, translation in zip(SHOWN, translations):
        table.add_row("new to it", text)
        table.add_row("translation", Text(translation, style="bold"))
        table.add_row("reference", right[text], end_section=True)
    console.print(table)
    console.print(
        "What each word of the first translation comes from: the attention to the source while "
        "the word was said, dark where there is much."
    )
    words = alignment_of_text(model, SHOWN[0]).in_words()
    show_alignment(words.source, words.target, words.mean(words.layer), console)
    console.print(
        f"BLEU {metrics['bleu']:.1f}, chrF {metrics['chrf']:.1f} on {metrics['sentences']} such "
        "sentences: numbers of a toy."
    )
    console.print(f"Files: {run.directory}/ (model/, subwords/, metrics.json, log.txt)")
    return {"test": metrics, "run": run.directory, "translations": translations}


def translation_config(output: Path) -> TranslationConfig:
    """Returns the configuration of the toy's run, in the folder `output`."""
    parts = {part: str(sample_path(f"translation/{part}.tsv")) for part in PARTS}
    place = {"output": str(output / "translator"), "overwrite": True}
    return TranslationConfig.from_dict({**parts, **place, **TRANSLATOR_SETTINGS})


def ask_questions(console: Console) -> dict[str, Any]:
    """Asks the sample questions and shows a few answers; returns exact match and F1 in percent.

    These are in an extra: without it nothing is returned.
    """
    path = sample_path("questions/questions.json")
    examples = read_squad(path)
    model = load(QUESTION_MODEL)
    shown = examples.select(_SHOWN_QUESTIONS)
    texts = {"question": shown.questions, "context": shown.contexts}
    for *row, answer in zip(*texts.values(), model.answers(texts), strict=True):
        show_answer(tuple(row), {**answer, "nbest": answer["nbest"][:3]}, console)
    try:
        metrics, _ = measure_answers(model, examples)
    except ImportError:
        needs = f"Exact match and F1 need SQuAD's official evaluation: {install_extra('squad')}."
        console.print(needs, markup=False)
        return {}
    console.print(
        f"All {len(examples)} sample questions: exact match {metrics['exact_match']:.0f} %, F1 "
        f"{metrics['f1']:.0f} %."
    )
    console.print(f"Files: {path}")
    return {name: metrics[name] for name in ("exact_match", "f1")}


def find_names(console: Console) -> dict[str, Any]:
    """Finds the names in the sample sentences and shows a few; returns precision, recall and F1."""
    path = sample_path("entities/sentences.conll")
    sentences = read_conll(path)
    model = load(ENTITY_MODEL)
    texts = sentences.select(_SHOWN_SENTENCES).texts
    for text, entities in zip(texts, model.answers(texts), strict=True):
        show_answer((text,), {"entities": entities}, console)
    metrics = measure_entities(model, sentences)
    console.print(
        f"All {len(sentences)} sample sentences: precision {metrics['precision']:.2f}, recall "
        f"{metrics['recall']:.2f}, F1 {metrics['f1']:.2f}."
    )
    console.print(f"Files: {path}")
    return {name: metrics[name] for name in ("precision", "recall", "f1")}


def show_alignment(
    source: Sequence[str], target: Sequence[str], weights: Any, console: Console
) -> None:
    """Prints a line for each word of a translation: its main source word, and shades of all.

    The shades are in the order of the S source words, one character per word; the darkest is the
    largest of the weights (T, S).
    """
    if not len(target):
        console.print(Text("nothing to translate", style="dim"))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("translation", "from", "weight", "whole source"):
        table.add_column(heading, justify="right" if heading == "weight" else "left")
    most = weights.max()
    for word, row in zip(target, weights, strict=True):
        best = int(row.argmax())
        shades = "".join(SHADES[round(4 * float(weight / most))] for weight in row)
        table.add_row(
            Text(word), Text(source[best], style="cyan"), f"{row[best]:.2f}", Text(shades)
        )
    console.print(table)
