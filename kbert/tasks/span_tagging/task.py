"""The task span tagging: any number of answers, by a tag for each token."""

from collections.abc import Sequence
from typing import Any

from kbert.tasks.ner.task import is_span_tagger
from kbert.tasks.question_answering.task import QuestionTask


class SpanTaggingTask(QuestionTask):
    """The task of answering with any number of spans."""

    name = "span-tagging"
    model_name = "SpanTagger"
    module = "kbert.tasks.span_tagging.model"
    does = "finds all answers to a question in a context"
    page = "spans"
    outputs = ("count", "starts")
    answer_keys = ("answers",)
    by_places = True
    settings = ("stride", "max_question_length", "soft", "dropout")
    options = ("stride", "max_question_length", "adapter_dim", "other_windows")

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return is_span_tagger(architecture, checkpoint)

    def monitors(self, labels: Sequence[str] | None) -> list[str]:
        return ["span_overlap_f1", "span_exact_f1"]

    def reset(self, model: Any) -> None:
        model.outside_bias = 0.0

    def tuned_metrics(self, model: Any, examples: Any, tune: bool) -> dict[str, Any]:
        from kbert.tasks.span_tagging.evaluation import measure_spans

        return measure_spans(model, examples, tune)


TASK = SpanTaggingTask()
