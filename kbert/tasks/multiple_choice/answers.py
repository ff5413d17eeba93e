"""Answers of multiple choice."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """The index of the best choice, its probability, and the probabilities of all."""

    choice: int
    score: float
    scores: list[float]
    truncated: bool | None = None


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    return plain


def typed_answer(answer: dict[str, Any]) -> Choice:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    cut = answer.get("truncated")
    return Choice(answer["choice"], answer["score"], answer["scores"], cut)
