"""The task translation: sentences of one language in another."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kbert.tasks.answers import records
from kbert.tasks.task import Task

_LONGEST_SAMPLE = 40
_COLUMNS = ("translation", "score")


@dataclass(frozen=True)
class Translation:
    """The translation of a text, its score, and the n best as pairs of text and score."""

    translation: str
    score: float
    nbest: list[tuple[str, float]]
    truncated: bool | None = None


class TranslationTask(Task):
    """The task of translating sentences."""

    name = "translation"
    model_name = "Translator"
    module = "kbert.tasks.translation.model"
    does = "translates a text"
    page = "translation"
    outputs = ("nbest_translation",)
    answer_keys = ("translation", "nbest")
    has_nbest = True
    pictures = ("alignment", "attention")

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        nbest = records({key: plain.pop(f"nbest_{key}") for key in _COLUMNS})
        best = {key: plain.pop(key) for key in _COLUMNS}
        # A search may find fewer, and -inf is no number of JSON's.
        return {**best, "nbest": [one for one in nbest if one["score"] > -math.inf], **plain}

    def typed_answer(self, answer: Mapping[str, Any]) -> Translation:
        nbest = [(one["translation"], one["score"]) for one in answer["nbest"]]
        return Translation(answer["translation"], answer["score"], nbest, answer.get("truncated"))

    def give_more(self, model: Any, nbest: int) -> None:
        model.beam_size = max(nbest, model.beam_size)
        model.nbest = nbest

    def attention(self, model: Any, texts: Sequence[str]) -> tuple[list[str], list[Any]]:
        from kbert.tasks.translation.alignment import attention_of_source

        return attention_of_source(model, texts)

    def text_columns(self, config: Any) -> tuple[str | int | None, ...]:
        return (config.source_column,)

    def request_words(self, longest: int) -> int:
        # A sentence: the time grows with the length of the translation.
        return min(longest, _LONGEST_SAMPLE)


TASK = TranslationTask()
