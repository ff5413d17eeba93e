"""Parts of `kbert demo`: the models that come with kbert, and a translator trained on samples."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from kbert.data.entities.conll import read_conll
from kbert.data.questions.squad import read_squad
from kbert.data.samples import sample_path
from kbert.data.translation.parallel_text import read_parallel_tsv
from kbert.tasks.load import load
from kbert.tasks.ner.task import measure_entities
from kbert.tasks.question_answering.task import measure_answers
from kbert.tasks.registry import show_answer
from kbert.tasks.translation.text_alignment import alignment_of_text
from kbert.training.config.translation_config import TranslationConfig
from kbert.training.run import train
from kbert.training.runs.load_model import load_model
from kbert.training.runs.run_directory import load_run

# One layer on each side and a piece for nearly every word: the toy learns in half a minute what
# larger models also learn.
SETTINGS: dict[str, Any] = {
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
_SHADES = " \u2591\u2592\u2593\u2588"


def demo_translation(output: Path, console: Console) -> dict[str, Any]:
    """Trains a toy translator, evaluates it, and shows translations of unseen sentences.

    Returns the metrics of the test pairs, the folder of the run, and the translations.
    """
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
    files = {part: f"translation/{part}.tsv" for part in ("train", "validation", "test")}
    parts = {part: str(sample_path(file)) for part, file in files.items()}
    place = {"output": str(output / "translator"), "overwrite": True}
    return TranslationConfig.from_dict({**parts, **place, **SETTINGS})


def ask_questions(console: Console) -> dict[str, Any]:
    """Asks the sample questions and shows a few answers; returns exact match and F1 in percent."""
    path = sample_path("questions/questions.json")
    examples = read_squad(path)
    model = load(QUESTION_MODEL)
    shown = examples.select(_SHOWN_QUESTIONS)
    texts = {"question": shown.questions, "context": shown.contexts}
    for question, context, answer in zip(
        shown.questions, shown.contexts, model.answers(texts), strict=True
    ):
        show_answer((question, context), {**answer, "nbest": answer["nbest"][:3]}, console)
    metrics, _ = measure_answers(model, examples)
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
    """Prints a line for each of T words of a translation: its main source word, and shades of all.

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
        shades = "".join(_SHADES[round(4 * float(weight / most))] for weight in row)
        table.add_row(
            Text(word), Text(source[best], style="cyan"), f"{row[best]:.2f}", Text(shades)
        )
    console.print(table)
