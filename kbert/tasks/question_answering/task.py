"""The task question answering: answer spans in texts of any length."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from kbert.data.questions.answer_alignment import align_answers, all_occurrences
from kbert.data.questions.question_examples import QuestionExamples, required_answers
from kbert.data.questions.squad import read_questions
from kbert.data.tables.table import check_columns
from kbert.metrics.answers import import_evaluations, squad2_metrics, squad_metrics
from kbert.tasks.answers import Span, plain_values, records, spans, with_answers
from kbert.tasks.options import FEATURE_OPTIONS
from kbert.tasks.reading_task import ReadingTask

logger = logging.getLogger(__name__)

_NBEST = ("answer", "score", "start", "end")


@dataclass(frozen=True)
class Answer:
    """The answer to a question; `best` is None if the context has none; `nbest` is best first."""

    best: Span | None
    nbest: list[Span]
    has_answer: bool
    null_score: float | None = None
    truncated: bool | None = None


class QuestionTask(ReadingTask):
    """Base class of tasks on questions about long texts."""

    # Whether answers are compared by their offsets, not by their texts.
    by_places = False

    def check_columns(self, path: str, columns: Mapping[str, str | int | None]) -> None:
        if not path.lower().removesuffix(".gz").endswith(".json"):
            check_columns(path, ("question", "context"))

    def read_file(self, path: str, config: Any, part: str) -> QuestionExamples:
        return self._aligned(read_questions(path), config, part)

    def read_tfds(self, name: str, split: str, config: Any, part: str) -> QuestionExamples:
        from kbert.data.tfds_examples import read_tfds_questions

        return self._aligned(read_tfds_questions(name, split, config.data), config, part)

    def _aligned(self, examples: QuestionExamples, config: Any, part: str) -> QuestionExamples:
        if part != "train" and not self.by_places:
            import_evaluations()  # before hours of training, not after
            return examples
        examples = aligned_questions(examples)
        return all_occurrences(examples) if config.all_occurrences else examples

    def inputs(self, model: Any, examples: Any) -> Any:
        from kbert.tasks.inputs import WindowInput

        if not isinstance(examples, QuestionExamples):
            raise ValueError(
                f"{examples.source}: the examples must be questions for a {type(model).__name__}. "
                "Received: sentences"
            )
        # Only answers with an offset can be learned; metrics compare texts.
        answers = [
            [answer for answer in several if answer.is_in(context)]
            for several, context in zip(required_answers(examples), examples.contexts)
        ]
        return WindowInput(*model.examples(model.read_inputs(examples), answers))

    def prepare(self, model: Any, examples: Any, glue: str | None = None) -> Any:
        from kbert.tasks.inputs import PreparedReading

        # A misplaced answer is no missing one: the loss is of what training would learn. Metrics
        # compare texts, and count every question.
        learned, _ = align_answers(examples)
        inputs = self.inputs(model, learned if len(learned) else examples)
        return PreparedReading(inputs, examples, self.tuned_metrics)

    def measured_examples(self, path: Any, columns: Mapping[str, Any], model: Any = None) -> Any:
        if not self.by_places:
            import_evaluations()  # before the model is loaded and asked
        examples = read_questions(path)
        return aligned_questions(examples) if self.by_places else examples

    def rows(self, examples: Any) -> list[tuple[Any, ...]]:
        return list(zip(examples.questions, examples.contexts))


class QuestionAnsweringTask(QuestionTask):
    """The task of answering with one span, or none."""

    name = "question-answering"
    model_name = "QuestionAnswerer"
    module = "kbert.tasks.question_answering.model"
    does = "finds the answer to a question in a context"
    page = "question_answering"
    outputs = ("nbest_answer",)
    answer_keys = ("answer",)
    fixed_length = 384
    target_shape = (1, 2)  # one answer a window, as in the training data of SQuAD
    compared = ("f1", "exact_match")
    pictures = ("attention", "span")
    has_answer_file = True
    metric_scale = 100.0
    columns = ()
    settings = ("stride", "max_question_length", "max_answer_length")
    options = (
        *(*settings, "all_occurrences", "other_windows"),
        *FEATURE_OPTIONS,
    )

    def json_answer(self, plain: dict[str, Any]) -> dict[str, Any]:
        # Lists are padded to the longest of a batch, with scores of 0.
        nbest = records({key: plain.pop(f"nbest_{key}") for key in _NBEST})
        return {**plain, "nbest": [one for one in nbest if one["score"] > 0]}

    def typed_answer(self, answer: Mapping[str, Any]) -> Answer:
        has_answer = bool(answer.get("has_answer", True))
        best = spans([answer], "answer")[0] if has_answer else None
        nbest = spans(answer.get("nbest", []), "answer")
        return Answer(best, nbest, has_answer, answer.get("null_score"), answer.get("truncated"))

    def show_answer(self, row: tuple[str, ...], answer: Mapping[str, Any], console: Any) -> None:
        console.print(Text(row[0], style="bold"))
        if not answer["has_answer"]:
            console.print(Text(f"no answer ({answer['score']:.2f})", style="red"))
            return
        console.print(with_answers(row[1], [(answer["start"], answer["end"])]))
        for number, one in enumerate(answer["nbest"], start=1):
            console.print(Text(f"  {number}. {one['answer']}  {one['score']:.3f}", style="dim"))

    def is_huggingface(self, architecture: str | None, checkpoint: Any) -> bool:
        return architecture == "BertForQuestionAnswering"

    def reset(self, model: Any) -> None:
        model.null_threshold = None

    def tuned_metrics(self, model: Any, examples: Any, tune: bool) -> dict[str, Any]:
        return measure_answers(model, examples, tune)[0]

    def measure(self, model: Any, examples: Any) -> tuple[dict[str, Any], dict[str, str]]:
        return measure_answers(model, examples)


def measure_answers(
    model: Any, examples: QuestionExamples, find_threshold: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the official metrics of a `QuestionAnswerer`, and its answers by questions' ids.

    SQuAD 2.0's metrics apply where some questions have no answer, otherwise those of 1.1. With
    `find_threshold` the model's threshold becomes the best one for 2.0's F1.
    """
    rows = [plain_values(row) for row in model.predict(examples)]
    gold = examples.answer_texts
    spans = {name: row["nbest_answer"][0] for name, row in zip(examples.ids, rows)}
    if all(examples.answers):
        answers = {name: row["answer"] for name, row in zip(examples.ids, rows)}
        return dict(squad_metrics(gold, answers)), answers
    scores = {name: row["null_score"] for name, row in zip(examples.ids, rows)}
    found = squad2_metrics(gold, spans, scores)
    if find_threshold:
        model.null_threshold = float(found["best_f1_thresh"])
    threshold = model.null_threshold
    answers = {
        name: "" if threshold is not None and scores[name] > threshold else text
        for name, text in spans.items()
    }
    metrics = dict(squad2_metrics(gold, answers))
    best = {name: value for name, value in found.items() if name.startswith("best_")}
    return {
        "f1": metrics.pop("f1"),
        "exact_match": metrics.pop("exact"),
        **metrics,
        **best,
        "null_threshold": threshold,
    }, answers


def aligned_questions(examples: QuestionExamples) -> QuestionExamples:
    """Returns questions whose answers are at their offsets; wrong ones are logged.

    Raises:
        ValueError: They were read without answers.
    """
    examples, report = align_answers(examples)
    if report.misaligned:
        logger.warning("%s", report)
    return examples


TASK = QuestionAnsweringTask()
