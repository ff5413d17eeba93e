"""The task span tagging: any number of answers, by a tag for each token."""

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from kbert.data.questions.question_examples import QuestionExamples
from kbert.metrics.answers import exact_and_overlap_f1
from kbert.tasks.answers import Spans, records, spans, with_answers
from kbert.tasks.ner.task import is_span_tagger
from kbert.tasks.options import FEATURE_OPTIONS
from kbert.tasks.question_answering.task import QuestionTask

_COLUMNS = {"answer": "answers", "score": "scores", "start": "starts", "end": "ends"}


class SpanTaggingTask(QuestionTask):
    """The task of answering with any number of spans."""

    name = "span-tagging"
    model_name = "SpanTagger"
    module = "kbert.tasks.span_tagging.model"
    does = "finds all answers to a question in a context"
    page = "spans"
    outputs = ("count", "starts")
    answer_keys = ("answers",)
    answer_list = "answers"
    by_places = True
    compared = ("span_overlap_f1", "span_exact_f1")
    columns = ()
    settings = ("stride", "max_question_length", "soft", "dropout")
    options = (
        *("stride", "max_question_length", "other_windows"),
        *FEATURE_OPTIONS,
    )

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        found = records({key: plain.pop(name) for key, name in _COLUMNS.items()})
        return {"answers": found[: plain.pop("count")], **plain}

    def typed_answer(self, answer: Mapping[str, Any]) -> Spans:
        return Spans(spans(answer["answers"], "answer"))

    def show_answer(self, row: tuple[str, ...], answer: Mapping[str, Any], console: Any) -> None:
        answers = answer["answers"]
        console.print(Text(row[0], style="bold"))
        if not answers:
            console.print(Text("no answer", style="red"))
            return
        console.print(with_answers(row[1], [(one["start"], one["end"]) for one in answers]))

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return is_span_tagger(architecture, checkpoint)

    def reset(self, model: Any) -> None:
        model.outside_bias = 0.0

    def tuned_metrics(self, model: Any, examples: Any, tune: bool) -> dict[str, Any]:
        return measure_spans(model, examples, tune)


def measure_spans(
    model: Any, examples: QuestionExamples, find_bias: bool = False
) -> dict[str, Any]:
    """Evaluates a `SpanTagger` by whole spans, and by characters.

    Every distinct answer of a question counts as one to be found. With `find_bias` the model's
    `outside_bias` becomes the best one for these questions.
    """
    true = [[(a.start, a.start + len(a.text)) for a in several] for several in examples.answers]
    if find_bias:
        by_bias = model.spans_with_biases(examples.questions, examples.contexts)
        found = {bias: exact_and_overlap_f1(true, spans) for bias, spans in by_bias.items()}
        names = SpanTaggingTask.compared
        # Among several best, the one with the smallest absolute value.
        best = max(found, key=lambda bias: (*(found[bias][name] for name in names), -abs(bias)))
        model.outside_bias = best
        return {**found[best], "outside_bias": best}
    rows = model.predict(examples)
    predicted = [
        [(int(start), int(end)) for start, end in zip(row["starts"], row["ends"]) if end > start]
        for row in rows  # a blank alone, where tokens are bytes, is no answer
    ]
    return {**exact_and_overlap_f1(true, predicted), "outside_bias": model.outside_bias}


TASK = SpanTaggingTask()
