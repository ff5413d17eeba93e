"""Parts that the answers of several tasks share: plain values, spans, marks in a text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

_ANSWER_STYLE = "bold black on green"
# Characters of the text that are shown on each side of what is marked.
_AROUND = 300


@dataclass(frozen=True)
class Span:
    """A span of a text: its text, its offsets in characters, and its score."""

    text: str
    start: int
    end: int
    score: float
    label: str | None = None


@dataclass(frozen=True)
class Spans:
    """All entities of a text, or all answers to a question, in the order of the text."""

    spans: list[Span]


def plain_values(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row, NumPy values, as plain Python values, bytes as text."""
    return {key: _plain(value) for key, value in row.items()}


def records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Returns columns of one length as a list of dicts."""
    return [dict(zip(columns, values)) for values in zip(*columns.values(), strict=True)]


def spans(found: Iterable[Mapping[str, Any]], name: str) -> list[Span]:
    """Returns answers or entities, whose texts are under `name`, as objects."""
    return [
        Span(one[name], one["start"], one["end"], one["score"], one.get("label")) for one in found
    ]


def marked(content: str, marks: Iterable[tuple[int, int, Text]]) -> Text:
    """Returns a text in which each span, from `start` to `end`, is replaced by what marks it."""
    shown, done = Text(), 0
    for start, end, mark in marks:
        shown.append(content[done:start]).append_text(mark)
        done = end
    return shown.append(content[done:])


def answer_mark(answer: str) -> Text:
    """Returns an answer as it is marked; brackets show its ends where there are no colours."""
    return Text(f"[{answer}]", _ANSWER_STYLE)


def with_answers(content: str, places: Sequence[tuple[int, int]]) -> Text:
    """Returns the part of a text around answers at places (start, end), with these marked."""
    text = marked(content, [(start, end, answer_mark(content[start:end])) for start, end in places])
    first, last = places[0][0], places[-1][1] + 2 * len(places)  # brackets included
    # Cut between words, where there are some.
    begin, stop = max(0, first - _AROUND), last + _AROUND
    if begin:
        begin = text.plain.find(" ", begin, first) + 1 or begin
    if stop < len(text):
        space = text.plain.rfind(" ", last, stop)
        stop = stop if space < 0 else space
    before, after = "... " if begin else "", " ..." if stop < len(text) else ""
    return Text.assemble((before, "dim"), text[begin:stop], (after, "dim"))


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy, which this module need not import
        value = value.tolist()
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
