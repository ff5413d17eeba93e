"""Answers, entities and words for [MASK] marked in their text, for a terminal."""

from typing import Any

from rich.console import Console
from rich.text import Text

_ANSWER = "bold black on green"
_STYLES = (
    "bold black on cyan",
    "bold black on yellow",
    "bold white on magenta",
    "bold white on blue",
    "bold black on green",
    "bold white on red",
)
# Characters of the text that are shown on each side of what is marked.
_AROUND = 300


def show_marked(row: tuple[str, ...], answer: dict[str, Any], console: Console) -> None:
    """Prints a text with what a model found in it.

    Args:
        row: The texts that the model read, the marked one last.
        answer: From `kbert.pipelines.inference.json_answers.json_answer`.
        console: Where to print.

    Raises:
        ValueError: The answer has no places in a text.
    """
    if "nbest" in answer:
        _show_answer(row, answer, console)
    elif "masks" in answer:
        _show_masks(row[-1], answer["masks"], console)
    elif "entities" in answer:
        _show_entities(row[-1], answer["entities"], console)
    elif "answers" in answer:
        _show_answers(row, answer["answers"], console)
    else:
        raise ValueError("`--show` must be given for a model that marks places in a text.")
    console.print()


def _show_answer(row: tuple[str, ...], answer: dict[str, Any], console: Console) -> None:
    console.print(Text(row[0], style="bold"))
    if not answer["has_answer"]:
        console.print(Text(f"no answer ({answer['score']:.2f})", style="red"))
        return
    text = Text(row[1])
    text.stylize(_ANSWER, answer["start"], answer["end"])
    console.print(_cut(text, answer["start"], answer["end"]))
    for number, one in enumerate(answer["nbest"], start=1):
        console.print(Text(f"  {number}. {one['answer']}  {one['score']:.3f}", style="dim"))


def _show_answers(
    row: tuple[str, ...], answers: list[dict[str, Any]], console: Console
) -> None:
    console.print(Text(row[0], style="bold"))
    if not answers:
        console.print(Text("no answer", style="red"))
        return
    text = Text(row[1])
    for one in answers:
        text.stylize(_ANSWER, one["start"], one["end"])
    console.print(_cut(text, answers[0]["start"], answers[-1]["end"]))


def _show_entities(content: str, entities: list[dict[str, Any]], console: Console) -> None:
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


def _show_masks(content: str, masks: list[dict[str, Any]], console: Console) -> None:
    shown = Text()
    end = 0
    for mask in masks:
        shown.append(content[end : mask["start"]])
        shown.append(mask["words"][0]["word"], _ANSWER)
        end = mask["end"]
    shown.append(content[end:])
    console.print(shown)
    for number, mask in enumerate(masks, start=1):
        words = ", ".join(f"{one['word']} {one['score']:.3f}" for one in mask["words"])
        console.print(Text(f"  {number}. {words}", style="dim"))


def _cut(text: Text, start: int, end: int) -> Text:
    """The part of a long text around what is marked."""
    begin, stop = max(0, start - _AROUND), min(len(text), end + _AROUND)
    before, after = "... " if begin else "", " ..." if stop < len(text) else ""
    return Text.assemble((before, "dim"), text[begin:stop], (after, "dim"))
