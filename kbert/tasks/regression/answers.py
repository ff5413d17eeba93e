"""Answers of regression."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """The score of a text, by a regressor."""

    score: float
    truncated: bool | None = None


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    return plain


def typed_answer(answer: dict[str, Any]) -> Score:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    return Score(answer["score"], answer.get("truncated"))
