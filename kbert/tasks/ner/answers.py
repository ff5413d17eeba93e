"""Answers of named-entity recognition."""

from typing import Any

from rich.console import Console
from rich.text import Text

from kbert.tasks.base.answers import Spans, records, spans

_COLUMNS = ("entity", "label", "score", "start", "end", "start_byte", "end_byte")
_STYLES = (
    "bold black on cyan",
    "bold black on yellow",
    "bold white on magenta",
    "bold white on blue",
    "bold black on green",
    "bold white on red",
)


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    found = records({key: plain.pop(key) for key in _COLUMNS})
    return {"entities": found[: plain.pop("count")], **plain}


def typed_answer(answer: dict[str, Any]) -> Spans:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    return Spans(spans(answer["entities"], "entity"))


def show_answer(row: tuple[str, ...], answer: dict[str, Any], console: Console) -> None:
    """Prints a text with what was found in it.

    Args:
        row: The texts that the model read, the marked one last.
        answer: From `json_answer`.
        console: Where to print.
    """
    content, entities = row[-1], answer["entities"]
    labels = sorted({one["label"] for one in entities})
    styles = {label: _STYLES[number % len(_STYLES)] for number, label in enumerate(labels)}
    shown = Text()
    end = 0
    for one in entities:
        shown.append(content[end : one["start"]])
        # Brackets show the ends where there are no colours.
        shown.append(f"[{one['entity']}", styles[one["label"]])
        shown.append(f" {one['label']}]", "dim")
        end = one["end"]
    shown.append(content[end:])
    console.print(shown)
