"""The task translation: sentences of one language in another."""

from collections.abc import Sequence
from typing import Any

from kbert.tasks.base.task import Task

_LONGEST_SAMPLE = 40


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

    def give_more(self, model: Any, nbest: int) -> None:
        model.beam_size = max(nbest, model.beam_size)
        model.nbest = nbest

    def attention(self, model: Any, texts: Sequence[str]) -> tuple[list[str], list[Any]]:
        from kbert.tasks.translation.text_alignment import attention_of_source

        return attention_of_source(model, texts)

    def text_columns(self, config: Any) -> tuple[str | int | None, ...]:
        return (config.source_column,)

    def request_words(self, longest: int) -> int:
        # A sentence: the time grows with the length of the translation.
        return min(longest, _LONGEST_SAMPLE)


TASK = TranslationTask()
