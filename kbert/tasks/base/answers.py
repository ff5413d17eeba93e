"""Parts that the answers of several tasks share: plain values, spans, marks in a text."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.text import Text

ANSWER_STYLE = "bold black on green"
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
    """Returns the outputs for one row as plain Python values, bytes as text.

    Args:
        row: Name of each output -> its NumPy value for the row.
    """
    return {key: _plain(value) for key, value in row.items()}


def records(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Returns columns of one length as a list of dicts.

    Args:
        columns: Name -> values.
    """
    return [dict(zip(columns, values)) for values in zip(*columns.values(), strict=True)]


def spans(found: Iterable[dict[str, Any]], name: str) -> list[Span]:
    """Returns answers or entities as objects.

    Args:
        found: Dicts with the text under `name`, with `start`, `end`, `score` and perhaps `label`.
        name: The key of the text.
    """
    return [
        Span(one[name], one["start"], one["end"], one["score"], one.get("label")) for one in found
    ]


def around(text: Text, start: int, end: int) -> Text:
    """Returns the part of a long text around what is marked.

    Args:
        text: The text.
        start: Where the first mark begins.
        end: Where the last mark ends.
    """
    begin, stop = max(0, start - _AROUND), min(len(text), end + _AROUND)
    before, after = "... " if begin else "", " ..." if stop < len(text) else ""
    return Text.assemble((before, "dim"), text[begin:stop], (after, "dim"))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
