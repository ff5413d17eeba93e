"""The task captioning: a sentence that says what is in an image."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kbert.tasks.answers import records
from kbert.tasks.task import Task

_COLUMNS = ("caption", "score")


@dataclass(frozen=True)
class Caption:
    """The caption of an image, its score, and the n best as pairs of text and score.

    `problem` says why an image has none; it is "" for an image that is well.
    """

    caption: str
    score: float
    nbest: list[tuple[str, float]]
    problem: str = ""


class CaptioningTask(Task):
    """The task of captioning images."""

    name = "captioning"
    model_name = "Captioner"
    module = "kbert.tasks.captioning.model"
    does = "says what is in an image"
    page = "captioning"
    outputs = ("nbest_caption",)
    answer_keys = ("caption", "nbest")
    has_nbest = True
    pictures = ("caption",)

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        nbest = records({key: plain.pop(f"nbest_{key}") for key in _COLUMNS})
        best = {key: plain.pop(key) for key in _COLUMNS}
        # A search may find fewer, and -inf is no number of JSON's.
        return {**best, "nbest": [one for one in nbest if one["score"] > -math.inf], **plain}

    def typed_answer(self, answer: Mapping[str, Any]) -> Caption:
        nbest = [(one["caption"], one["score"]) for one in answer["nbest"]]
        return Caption(answer["caption"], answer["score"], nbest, answer.get("problem", ""))

    def give_more(self, model: Any, nbest: int) -> None:
        model.beam_size = max(nbest, model.beam_size)
        model.nbest = nbest


TASK = CaptioningTask()
