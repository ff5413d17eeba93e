"""Answers of translation."""

import math
from dataclasses import dataclass
from typing import Any

from kbert.tasks.base.answers import records

_COLUMNS = ("translation", "score")


@dataclass(frozen=True)
class Translation:
    """The translation of a text, its score, and the n best as pairs of text and score."""

    translation: str
    score: float
    nbest: list[tuple[str, float]]
    truncated: bool | None = None


def json_answer(plain: dict[str, Any]) -> dict[str, Any]:
    """Returns the outputs for one row as JSON has the answer.

    Args:
        plain: From `kbert.tasks.base.answers.plain_values`.
    """
    nbest = records({key: plain.pop(f"nbest_{key}") for key in _COLUMNS})
    best = {key: plain.pop(key) for key in _COLUMNS}
    # A search may find fewer, and -inf is no number of JSON's.
    return {**best, "nbest": [one for one in nbest if one["score"] > -math.inf], **plain}


def typed_answer(answer: dict[str, Any]) -> Translation:
    """Returns an answer as an object.

    Args:
        answer: From `json_answer`.
    """
    nbest = [(one["translation"], one["score"]) for one in answer["nbest"]]
    return Translation(answer["translation"], answer["score"], nbest, answer.get("truncated"))
