"""Evaluation of question answering with the official metrics of SQuAD."""

from typing import Any

from kbert.data.questions.question_examples import QuestionExamples
from kbert.metrics.answers import squad2_metrics, squad_metrics


def measure_answers(
    model: Any, examples: QuestionExamples, find_threshold: bool = False
) -> tuple[dict[str, Any], dict[str, str]]:
    """Evaluates a `QuestionAnswerer` with the official metrics of SQuAD 1.1 or 2.0.

    Args:
        model: The model.
        examples: Questions; SQuAD 2.0's metrics apply where some have no answer.
        find_threshold: Whether to set the model's threshold to the best one for these questions,
            if some have no answer.

    Returns:
        The metrics, and the answer of each question by its id.
    """
    rows = model.predict(examples)
    gold = examples.answer_texts
    spans = {name: _text(row["nbest_answer"][0]) for name, row in zip(examples.ids, rows)}
    if all(examples.answers):
        answers = {name: _text(row["answer"]) for name, row in zip(examples.ids, rows)}
        return dict(squad_metrics(gold, answers)), answers
    scores = {name: float(row["null_score"]) for name, row in zip(examples.ids, rows)}
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


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
