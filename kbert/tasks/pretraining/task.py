"""The task pretraining: masked tokens in texts of any length, and the next sentence."""

from typing import Any

from kbert.tasks.base.task import Task

_ARCHITECTURES = ("BertForPreTraining", "BertForMaskedLM", "BertLMHeadModel")


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

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        # Some formats have no class name.
        has_head = "cls.predictions.bias" in checkpoint.heads
        return architecture in _ARCHITECTURES or (architecture is None and has_head)

    def give_more(self, model: Any, nbest: int) -> None:
        if nbest > len(model.tokenizer.vocabulary):
            raise ValueError(
                f"`--nbest` must be at most {len(model.tokenizer.vocabulary)}, the words and "
                f"pieces that the model knows. Received: {nbest}"
            )
        model.nbest = nbest


TASK = PretrainingTask()
