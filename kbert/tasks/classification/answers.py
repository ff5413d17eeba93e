"""Answers of classification."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Classification:
    """The class of a text: its name, its probability, and the probabilities of all classes."""

    label: str
    score: float
    scores: dict[str, float]
    truncated: bool | None = None


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    labels = plain.pop("labels")
    plain["scores"] = dict(zip(labels, plain["scores"]))
    return plain


def typed_answer(answer: dict[str, Any]) -> Classification:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    cut = answer.get("truncated")
    return Classification(answer["label"], answer["score"], answer["scores"], cut)
