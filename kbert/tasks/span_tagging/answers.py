"""Answers of span tagging."""

from typing import Any

from rich.console import Console
from rich.text import Text

from kbert.tasks.base.answers import ANSWER_STYLE, Spans, around, records, spans

_COLUMNS = {"answer": "answers", "score": "scores", "start": "starts", "end": "ends"}


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    found = records({key: plain.pop(name) for key, name in _COLUMNS.items()})
    return {"answers": found[: plain.pop("count")], **plain}


def typed_answer(answer: dict[str, Any]) -> Spans:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    return Spans(spans(answer["answers"], "answer"))


def show_answer(row: tuple[str, ...], answer: dict[str, Any], console: Console) -> None:
    """Prints a text with what was found in it.

    Args:
        row: The texts that the model read, the marked one last.
        answer: From `json_answer`.
        console: Where to print.
    """
    answers = answer["answers"]
    console.print(Text(row[0], style="bold"))
    if not answers:
        console.print(Text("no answer", style="red"))
        return
    text = Text(row[1])
    for one in answers:
        text.stylize(ANSWER_STYLE, one["start"], one["end"])
    console.print(around(text, answers[0]["start"], answers[-1]["end"]))
