"""The part of `kbert demo` with two models that come with kbert: questions and named entities."""

from typing import Any

from rich.console import Console

from kbert.data.entities.conll import read_conll
from kbert.data.questions.squad import read_squad
from kbert.data.samples import sample_path
from kbert.tasks.answers import show_answer
from kbert.tasks.load import load
from kbert.tasks.ner.evaluation import measure_entities
from kbert.tasks.question_answering.evaluation import measure_answers

QUESTION_MODEL = "minilm-squad"
ENTITY_MODEL = "minilm-ner"
# Indices in the samples: questions of three texts, and sentences with several types of names.
_SHOWN_QUESTIONS = (6, 13, 18)
_SHOWN_SENTENCES = (3, 11, 17)


def ask_questions(console: Console) -> dict[str, Any]:
    """Asks the sample questions and shows a few answers in their texts.

    Args:
        console: The console to print to.

    Returns:
        Exact match and F1, in percent, of all sample questions.
    """
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
    """Finds the names in the sample sentences and shows a few.

    Args:
        console: The console to print to.

    Returns:
        Precision, recall and F1 of all sample sentences.
    """
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
