"""A server's answers as typed objects: one class a task."""

from dataclasses import dataclass
from typing import Any

from kbert.pipelines.inference.json_answers import json_answer


@dataclass(frozen=True)
class Classification:
    """The class of a text: its name, its probability, and the probabilities of all classes."""

    label: str
    score: float
    scores: dict[str, float]
    truncated: bool | None = None


@dataclass(frozen=True)
class Score:
    """The score of a text, by a regressor."""

    score: float
    truncated: bool | None = None


@dataclass(frozen=True)
class Choice:
    """The index of the best choice, its probability, and the probabilities of all."""

    choice: int
    score: float
    scores: list[float]
    truncated: bool | None = None


@dataclass(frozen=True)
class Span:
    """A span of a text: its text, its offsets in characters, and its score."""

    text: str
    start: int
    end: int
    score: float
    label: str | None = None


@dataclass(frozen=True)
class Answer:
    """The answer to a question; `best` is None if the context has none; `nbest` is best first."""

    best: Span | None
    nbest: list[Span]
    has_answer: bool
    null_score: float | None = None
    truncated: bool | None = None


@dataclass(frozen=True)
class Spans:
    """All entities of a text, or all answers to a question, in the order of the text."""

    spans: list[Span]


@dataclass(frozen=True)
class Translation:
    """The translation of a text, its score, and the n best as pairs of text and score."""

    translation: str
    score: float
    nbest: list[tuple[str, float]]
    truncated: bool | None = None


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


AnyAnswer = (
    Classification | Score | Choice | Answer | Spans | Translation | Filling | dict[str, Any]
)


def typed_answer(row: dict[str, Any]) -> AnyAnswer:
    """Converts the outputs of a main signature for one row to an object of the matching class.

    Args:
        row: Name of each output -> its NumPy value for the row.

    Returns:
        The object; a dict of plain values for outputs that match no class.
    """
    plain = json_answer(row)
    cut = plain.get("truncated")
    if "translation" in plain and "nbest" in plain:
        nbest = [(one["translation"], one["score"]) for one in plain["nbest"]]
        return Translation(plain["translation"], plain["score"], nbest, cut)
    if "answer" in plain:
        return _answer(plain)
    if "filled" in plain and "masks" in plain:
        return Filling(plain["filled"], [_mask(one) for one in plain["masks"]])
    for key, name in (("entities", "entity"), ("answers", "answer")):
        if key in plain:
            return Spans([_span(one, name) for one in plain[key]])
    if "label" in plain and isinstance(plain.get("scores"), dict):
        return Classification(plain["label"], plain["score"], plain["scores"], cut)
    if "choice" in plain and "scores" in plain:
        return Choice(plain["choice"], plain["score"], plain["scores"], cut)
    if set(plain) <= {"score", "truncated"} and "score" in plain:
        return Score(plain["score"], cut)
    return plain


def _answer(plain: dict[str, Any]) -> Answer:
    has_answer = bool(plain.get("has_answer", True))
    nbest = [_span(one, "answer") for one in plain.get("nbest", [])]
    best = _span(plain, "answer") if has_answer else None
    return Answer(best, nbest, has_answer, plain.get("null_score"), plain.get("truncated"))


def _mask(plain: dict[str, Any]) -> Mask:
    words = [(one["word"], one["score"]) for one in plain["words"]]
    return Mask(plain["start"], plain["end"], words)


def _span(plain: dict[str, Any], name: str) -> Span:
    return Span(plain[name], plain["start"], plain["end"], plain["score"], plain.get("label"))
