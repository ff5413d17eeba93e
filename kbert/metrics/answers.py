"""Metrics of answers to questions: SQuAD's, and those of any number of spans a question.

SQuAD 1.1 and 2.0 are measured by the official evaluation in the Model Garden's version, which
compares answers as texts, ignoring case, punctuation, articles and spaces.

Sources: Rajpurkar et al., "SQuAD" (2016), section 6.1, and "Know What You Don't Know" (2018);
`official.nlp.tools.squad_evaluate_v1_1` and `squad_evaluate_v2_0` of tf-models-official.
"""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from kbert.extras import install_extra
from kbert.metrics.glue import NotFiniteError


def squad_metrics(
    answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]
) -> dict[str, float | int]:
    """Returns the metrics of SQuAD 1.1.

    `answers` are {question id: the gold answers, at least one}, and `predictions` {question id:
    answer}. Warns (`UserWarning`) if questions have no prediction; as in the official evaluation
    they count 0. Predictions for other questions are ignored.

    Returns:
        "exact_match" and "f1" in percent, means over the questions of the best over their gold
        answers, and "total", the number of questions.
    """
    _check(answers, predictions)
    for id, texts in answers.items():
        if not texts:
            raise ValueError(
                "`answers` must hold an answer for each question (`squad2_metrics` takes questions "
                f"without). Received: none for {id!r}"
            )
    answered = {id: texts for id, texts in answers.items() if id in predictions}
    if len(answered) < len(answers):
        missing = [id for id in answers if id not in predictions]
        warnings.warn(
            f"{len(missing)} of {len(answers)} questions have no prediction and count 0: "
            f"{_listed(missing)}",
            stacklevel=2,
        )
    # Unanswered questions are counted here: the official function would log a line for each.
    v1_1, _ = import_evaluations()
    found = v1_1.evaluate(_dataset(answered), predictions)
    scale = 100.0 * len(answered) / len(answers)
    return {
        "exact_match": scale * float(found["exact_match"]),
        "f1": scale * float(found["final_f1"]),
        "total": len(answers),
    }


def squad2_metrics(
    answers: Mapping[str, Sequence[str]],
    predictions: Mapping[str, str],
    null_scores: Mapping[str, float] | None = None,
) -> dict[str, float | int]:
    """Returns the metrics of SQuAD 2.0.

    Args:
        answers: {question id: the gold answers}; an empty list for an unanswerable question.
        predictions: {question id: answer}, for every question; "" for no answer.
        null_scores: {question id: score}, for every question: the higher, the likelier that there
            is no answer. For the metrics with "best", `predictions` must then hold the best answer
            of every question, whatever its score.

    Returns:
        "exact" and "f1" in percent, and "total"; "HasAns_exact", "HasAns_f1" and "HasAns_total" of
        the questions with an answer, "NoAns_..." of those without, where there are any. With
        `null_scores` also "best_exact" and "best_f1" at the best threshold, and these thresholds
        "best_exact_thresh" and "best_f1_thresh" (no answer where the score is above), and, if
        there are questions with an answer, the average precisions "pr_exact_ap", "pr_f1_ap" and
        "pr_oracle_ap". A score that is not finite is a `NotFiniteError`.
    """
    _check(answers, predictions)
    _check_complete("predictions", predictions, answers)
    ranks, thresholds = None, [0.0]
    if null_scores is not None:
        _check_complete("null_scores", null_scores, answers)
        ranks, thresholds = _ranks({id: null_scores[id] for id in answers})
    chosen = {id: predictions[id] for id in answers}
    _, v2_0 = import_evaluations()
    found = v2_0.evaluate(_dataset(answers), chosen, ranks)
    metrics: dict[str, float | int] = {}
    for name, value in found.items():
        if null_scores is None and name.startswith(("final_", "pr_")):
            continue  # computed with the same score for all
        if name.endswith("_thresh"):
            value = thresholds[round(value * len(answers))]
        name = name.replace("final_", "best_")
        metrics[name] = int(value) if name.endswith("total") else float(value)
    return metrics


def import_evaluations() -> tuple[Any, Any]:
    """Imports the official modules of SQuAD 1.1 and of 2.0; an ImportError names the extra."""
    try:
        from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0
    except ImportError as error:
        raise ImportError(
            "The metrics of SQuAD need its official evaluation in tf-models-official: "
            f"{install_extra('squad')}. Received: {error}"
        ) from error
    return squad_evaluate_v1_1, squad_evaluate_v2_0


def _dataset(answers: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Returns the questions in the format of SQuAD's files."""
    entries = [
        {"id": id, "answers": [{"text": text} for text in texts]} for id, texts in answers.items()
    ]
    return [{"paragraphs": [{"qas": entries}]}]


def _check(answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]) -> None:
    if not answers:
        raise ValueError("`answers` must hold a question. Received: none")
    for id, texts in answers.items():
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"`answers` must hold a list of strings for each question. Received: {texts!r} for "
                f"{id!r}"
            )
    if not any(id in predictions for id in answers):
        raise ValueError(
            "`predictions` must be answers to the questions in `answers`, such as "
            f"{next(iter(answers))!r}. Received: {len(predictions)} predictions, none for any of "
            "them"
        )
    for id, text in predictions.items():
        if not isinstance(text, str):
            raise ValueError(
                f"`predictions` must hold a string for each question. Received: {text!r} for {id!r}"
            )


def _check_complete(
    name: str, values: Mapping[str, Any], answers: Mapping[str, Sequence[str]]
) -> None:
    missing = [id for id in answers if id not in values]
    if missing:
        raise ValueError(
            f"`{name}` must hold a value for each of the {len(answers)} questions. Received: none "
            f"for {len(missing)} of them: {_listed(missing)}"
        )


def _ranks(scores: Mapping[str, float]) -> tuple[dict[str, float], list[float]]:
    """Returns the scores as ranks in (0, 1], and the threshold that each rank stands for.

    The official evaluation takes probabilities: a value above 1 would always mean no answer. The
    search for thresholds depends on the order of the scores only. Its threshold 0 means no answer
    for any question, which lies below the lowest score.
    """
    for id, score in scores.items():
        known = isinstance(score, int | float | np.integer | np.floating)
        if not known or not math.isfinite(score):
            raise NotFiniteError(
                f"`null_scores` must be finite numbers. Received: {score!r} for {id!r}"
            )
    values = sorted({float(score) for score in scores.values()})
    rank = {value: number for number, value in enumerate(values, start=1)}
    ranks = {id: rank[float(score)] / len(scores) for id, score in scores.items()}
    # Models compare in float32, which must tell it from the score.
    below = values[0] - 1e-6 * max(1.0, abs(values[0]))
    return ranks, [below, *values]


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:10]) + (", ..." if len(ids) > 10 else "")


Spans = Sequence[Sequence[tuple[int, int]]]


def exact_and_overlap_f1(true_spans: Spans, predicted_spans: Spans) -> dict[str, float]:
    """Returns precision, recall and F1 of spans, by exact match and by overlap.

    Each question has its spans (start, end), with an exclusive `end`, in code points of the
    context; none where there is no answer. Exact: a predicted span counts if it is one of the gold
    spans. Overlap: characters count, each once however many spans cover it, so a span that is
    nearly right is nearly counted. Both are summed over the questions before precision and recall
    are computed; ratios of 0 / 0 are 0. A span given twice counts once. The names are
    "span_exact_precision", "..._recall", "..._f1", and "span_overlap_...".
    """
    if not len(true_spans) or len(true_spans) != len(predicted_spans):
        raise ValueError(
            "`true_spans` and `predicted_spans` must hold the same questions, at least one. "
            f"Received: {len(true_spans)} and {len(predicted_spans)} questions"
        )
    exact, overlap = [], []
    for i, sides in enumerate(zip(true_spans, predicted_spans)):
        true = _checked("true_spans", sides[0], i)
        predicted = _checked("predicted_spans", sides[1], i)
        exact.append(_counts(true, predicted))
        overlap.append(_counts(_characters(true), _characters(predicted)))
    return {**_ratios("span_exact", exact), **_ratios("span_overlap", overlap)}


def _counts(true: set[Any], predicted: set[Any]) -> tuple[int, int, int]:
    return len(true & predicted), len(predicted), len(true)


def _ratios(prefix: str, counts: Sequence[tuple[int, int, int]]) -> dict[str, float]:
    """Returns precision, recall and F1 from each question's `_counts`."""
    right, predicted, true = map(sum, zip(*counts))
    return {
        f"{prefix}_precision": right / predicted if predicted else 0.0,
        f"{prefix}_recall": right / true if true else 0.0,
        f"{prefix}_f1": 2 * right / (predicted + true) if predicted + true else 0.0,
    }


def _checked(
    argument: str, spans: Iterable[tuple[int, int]], question: int
) -> set[tuple[int, int]]:
    found = set()
    for span in spans:
        pair = tuple(index(offset) for offset in span)
        if len(pair) != 2 or not 0 <= pair[0] < pair[1]:
            raise ValueError(
                f"`{argument}` must hold pairs of a start and an end behind it. Received: "
                f"{span!r} for question {question}"
            )
        found.add((pair[0], pair[1]))
    return found


def _characters(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {offset for start, end in spans for offset in range(start, end)}
