"""Answers of question answering."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from kbert.tasks.base.answers import ANSWER_STYLE, Span, around, records, spans

_NBEST = ("answer", "score", "start", "end")


@dataclass(frozen=True)
class Answer:
    """The answer to a question; `best` is None if the context has none; `nbest` is best first."""

    best: Span | None
    nbest: list[Span]
    has_answer: bool
    null_score: float | None = None
    truncated: bool | None = None


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    # Lists are padded to the longest of a batch, with scores of 0.
    nbest = records({key: plain.pop(f"nbest_{key}") for key in _NBEST})
    return {**plain, "nbest": [one for one in nbest if one["score"] > 0]}


def typed_answer(answer: dict[str, Any]) -> Answer:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    has_answer = bool(answer.get("has_answer", True))
    best = spans([answer], "answer")[0] if has_answer else None
    nbest = spans(answer.get("nbest", []), "answer")
    return Answer(best, nbest, has_answer, answer.get("null_score"), answer.get("truncated"))


def show_answer(row: tuple[str, ...], answer: dict[str, Any], console: Console) -> None:
    """Prints a text with what was found in it.

    Args:
        row: The texts that the model read, the marked one last.
        answer: From `json_answer`.
        console: Where to print.
    """
    console.print(Text(row[0], style="bold"))
    if not answer["has_answer"]:
        console.print(Text(f"no answer ({answer['score']:.2f})", style="red"))
        return
    text = Text(row[1])
    text.stylize(ANSWER_STYLE, answer["start"], answer["end"])
    console.print(around(text, answer["start"], answer["end"]))
    for number, one in enumerate(answer["nbest"], start=1):
        console.print(Text(f"  {number}. {one['answer']}  {one['score']:.3f}", style="dim"))
