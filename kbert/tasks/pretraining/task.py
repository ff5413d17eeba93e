"""The task pretraining: masked tokens in texts of any length, and the next sentence."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from kbert.tasks.answers import answer_mark, marked, records
from kbert.tasks.task import Task

# The classes of transformers whose heads can be loaded.
ARCHITECTURES = ("BertForPreTraining", "BertForMaskedLM", "BertLMHeadModel")
_OFFSETS = ("start", "end", "start_byte", "end_byte")


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


class PretrainingTask(Task):
    """The task of predicting masked tokens."""

    name = "pretraining"
    model_name = "MaskedLanguageModel"
    module = "kbert.tasks.pretraining.model"
    does = "says which words may stand at each [MASK] of a text"
    page = "masks"
    outputs = ("filled", "word")
    answer_keys = ("filled", "masks")
    has_windows = True
    has_nbest = True

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        ranked = zip(plain.pop("word"), plain.pop("score"), strict=True)
        words = [records({"word": word, "score": score}) for word, score in ranked]
        found = records({"words": words, **{key: plain.pop(key) for key in _OFFSETS}})
        return {"filled": plain.pop("filled"), "masks": found[: plain.pop("count")], **plain}

    def typed_answer(self, answer: Mapping[str, Any]) -> Filling:
        masks = [
            Mask(one["start"], one["end"], [(word["word"], word["score"]) for word in one["words"]])
            for one in answer["masks"]
        ]
        return Filling(answer["filled"], masks)

    def show_answer(self, row: tuple[str, ...], answer: Mapping[str, Any], console: Any) -> None:
        masks = answer["masks"]
        best = [answer_mark(mask["words"][0]["word"]) for mask in masks]
        marks = [(mask["start"], mask["end"], word) for mask, word in zip(masks, best)]
        console.print(marked(row[-1], marks))
        for number, mask in enumerate(masks, start=1):
            words = ", ".join(f"{one['word']} {one['score']:.3f}" for one in mask["words"])
            console.print(Text(f"  {number}. {words}", style="dim"))

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        # Some formats have no class name.
        has_head = "cls.predictions.bias" in checkpoint.heads
        return architecture in ARCHITECTURES or (architecture is None and has_head)

    def give_more(self, model: Any, nbest: int) -> None:
        if nbest > len(model.tokenizer.vocabulary):
            raise ValueError(
                f"`--nbest` must be at most {len(model.tokenizer.vocabulary)}, the words and "
                f"pieces that the model knows. Received: {nbest}"
            )
        model.nbest = nbest


TASK = PretrainingTask()
