"""Metrics of SQuAD 1.1 and 2.0, by the official evaluation in the Model Garden's version.

Answers are compared as texts, ignoring case, punctuation, articles and spaces.

Sources: Rajpurkar et al., "SQuAD" (2016), section 6.1, and "Know What You Don't Know" (2018);
`official.nlp.tools.squad_evaluate_v1_1` and `squad_evaluate_v2_0` of tf-models-official.
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from kbert.metrics.not_finite import NotFiniteError

_BEST = {
    "final_exact": "best_exact",
    "final_exact_thresh": "best_exact_thresh",
    "final_f1": "best_f1",
    "final_f1_thresh": "best_f1_thresh",
}


def squad_metrics(
    answers: Mapping[str, Sequence[str]], predictions: Mapping[str, str]
) -> dict[str, float | int]:
    """Returns the metrics of SQuAD 1.1.

    Warns (`UserWarning`) if questions have no prediction; as in the official evaluation they
    count 0. Predictions for other questions are ignored.

    Args:
        answers: {question id: the gold answers, at least one}.
        predictions: {question id: answer}.

    Returns:
        "exact_match" and "f1" in percent, means over the questions of the best over their gold
        answers, and "total", the number of questions.

    Raises:
        ValueError: there are no questions, one has no gold answer, no prediction is for any of
            them, or an answer is not a string.
        ImportError: tf-models-official is not installed.
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
    found = _evaluation("squad_evaluate_v1_1").evaluate(_dataset(answered), predictions)
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
        "pr_oracle_ap".

    Raises:
        ValueError: there are no questions, one has no prediction or no score, an answer is not a
            string, or a score is not finite.
        ImportError: tf-models-official is not installed.
    """
    _check(answers, predictions)
    _check_complete("predictions", predictions, answers)
    ranks, thresholds = None, [0.0]
    if null_scores is not None:
        _check_complete("null_scores", null_scores, answers)
        ranks, thresholds = _ranks({id: null_scores[id] for id in answers})
    chosen = {id: predictions[id] for id in answers}
    found = _evaluation("squad_evaluate_v2_0").evaluate(_dataset(answers), chosen, ranks)
    metrics: dict[str, float | int] = {}
    for name, value in found.items():
        if null_scores is None and name.startswith(("final_", "pr_")):
            continue  # computed with the same score for all
        if name.endswith("_thresh"):
            value = thresholds[round(value * len(answers))]
        metrics[_BEST.get(name, name)] = int(value) if name.endswith("total") else float(value)
    return metrics


def _evaluation(module: str) -> Any:
    try:
        from official.nlp.tools import squad_evaluate_v1_1, squad_evaluate_v2_0
    except ImportError as error:
        raise ImportError(
            "The metrics of SQuAD need tf-models-official. Install it with `pip install "
            f"tf-models-official`. ({error})"
        ) from error
    modules = {
        "squad_evaluate_v1_1": squad_evaluate_v1_1,
        "squad_evaluate_v2_0": squad_evaluate_v2_0,
    }
    return modules[module]


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
            f"`predictions` must be answers to the questions in `answers`, such as "
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
    return ranks, [float(np.nextafter(values[0], -np.inf)), *values]


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:10]) + (", ..." if len(ids) > 10 else "")
