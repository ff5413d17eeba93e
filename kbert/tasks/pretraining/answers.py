"""Answers of a masked language model."""

from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

from kbert.tasks.base.answers import ANSWER_STYLE, records

_OFFSETS = ("start", "end", "start_byte", "end_byte")


@dataclass(frozen=True)
class Mask:
    """One [MASK]: its offsets in characters, and the likeliest words with their probabilities."""

    start: int
    end: int
    words: list[tuple[str, float]]


@dataclass(frozen=True)
class Filling:
    """A text whose [MASK] are filled with the likeliest words, and the candidates for each."""

    filled: str
    masks: list[Mask]


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    ranked = zip(plain.pop("word"), plain.pop("score"), strict=True)
    words = [records({"word": word, "score": score}) for word, score in ranked]
    found = records({"words": words, **{key: plain.pop(key) for key in _OFFSETS}})
    return {"filled": plain.pop("filled"), "masks": found[: plain.pop("count")], **plain}


def typed_answer(answer: dict[str, Any]) -> Filling:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    masks = [
        Mask(one["start"], one["end"], [(word["word"], word["score"]) for word in one["words"]])
        for one in answer["masks"]
    ]
    return Filling(answer["filled"], masks)


def show_answer(row: tuple[str, ...], answer: dict[str, Any], console: Console) -> None:
    """Prints a text with what was found in it.

    Args:
        row: The texts that the model read, the marked one last.
        answer: From `json_answer`.
        console: Where to print.
    """
    content, masks = row[-1], answer["masks"]
    shown = Text()
    end = 0
    for mask in masks:
        shown.append(content[end : mask["start"]])
        shown.append(mask["words"][0]["word"], ANSWER_STYLE)
        end = mask["end"]
    shown.append(content[end:])
    console.print(shown)
    for number, mask in enumerate(masks, start=1):
        words = ", ".join(f"{one['word']} {one['score']:.3f}" for one in mask["words"])
        console.print(Text(f"  {number}. {words}", style="dim"))
