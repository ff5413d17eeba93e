"""Metrics of several labels an example, and the thresholds with the largest F1.

A label counts as predicted from its threshold on: probability >= threshold, both as float32, as a
model computes them. The numbers come from scikit-learn, which is loaded when one is asked for.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from kbert.metrics.glue import finite_array

# The smallest and the largest threshold that float32 tells from 0 and 1.
_INSIDE = (float(np.finfo("float32").tiny), 1.0 - 2.0**-24)


def label_set_metrics(
    right: Any, probabilities: Any, names: Sequence[str], thresholds: Any
) -> dict[str, Any]:
    """Returns the metrics of a classifier with several labels as a JSON-serializable dict.

    Args:
        right: (examples, C) in [0, 1]; from 1/2 on an example has the label.
        probabilities: (examples, C).
        names: the C labels.
        thresholds: (C,), from which on each label is predicted.

    Returns:
        "micro_f1", "micro_precision" and "micro_recall" of all labels together; "macro_f1", the
        mean over the labels that examples or predictions have; "exact_match", the share of
        examples of which all labels are right; "cross_entropy", the mean over examples and labels
        in nats; "per_class", for each name threshold, precision, recall, f1 and support. A ratio
        of 0 / 0 is 0.

    Raises:
        ValueError: there are no examples, or the shapes do not fit.
        NotFiniteError: a probability is not finite.
    """
    targets, scores = _checked(right, probabilities, len(names))
    truth, predicted = targets >= 0.5, is_chosen(scores, thresholds)
    rows = [_scores(*columns) for columns in zip(truth.T, predicted.T)]
    micro = _scores(truth.ravel(), predicted.ravel())
    occurring = np.any(truth | predicted, axis=0)
    # A probability of 0 for a right label costs log(1 / eps), not infinity.
    eps = np.finfo("float64").eps
    logs = targets * np.log(np.clip(scores, eps, 1.0))
    logs += (1.0 - targets) * np.log(np.clip(1.0 - scores, eps, 1.0))
    macro = [row["f1"] for row, occurs in zip(rows, np.ravel(occurring)) if occurs]
    bounds = np.broadcast_to(thresholds, len(names)).tolist()
    return {
        "micro_f1": micro["f1"],
        "macro_f1": float(np.mean(macro)) if macro else 0.0,
        "exact_match": float(np.mean((truth == predicted).all(axis=1))),
        "micro_precision": micro["precision"],
        "micro_recall": micro["recall"],
        "cross_entropy": float(-np.mean(logs)),
        "per_class": {
            name: {"threshold": bound, **row} for name, bound, row in zip(names, bounds, rows)
        },
    }


def is_chosen(probabilities: Any, thresholds: Any) -> np.ndarray:
    """Returns which labels are predicted, bool like `probabilities` (..., C)."""
    return np.asarray(probabilities, "float32") >= np.asarray(thresholds, "float32")


def best_thresholds(right: Any, probabilities: Any) -> list[float]:
    """Returns for each label the threshold in (0, 1) with the largest F1; the arrays are (n, C).

    It is 1/2 where that predicts the same, or else lies in the middle between two probabilities
    that occur, or between one and 0. Of several with the same F1 it is the one nearest to 1/2. A
    label that no example has, or whose probabilities are all 0, gets 1/2.
    """
    from sklearn import metrics as sklearn_metrics

    right, probabilities = np.asarray(right), np.asarray(probabilities)
    targets, scores = _checked(right, probabilities, right.shape[-1])
    found = []
    for truth, column in zip((targets >= 0.5).T, scores.T):
        if not truth.any():
            found.append(0.5)
            continue
        precision, recall, lowest = sklearn_metrics.precision_recall_curve(truth, column)
        total = np.maximum(precision + recall, np.finfo("float64").tiny)[:-1]
        f1 = 2.0 * precision[:-1] * recall[:-1] / total
        below = np.concatenate([[0.0], lowest[:-1]])
        # Where 1/2 lies between the two, nothing is nearer to it.
        middle = np.where((below < 0.5) & (lowest >= 0.5), 0.5, (below + lowest) / 2.0)
        # Of two neighbours in float32 the middle is one of them, which must not be the lower one.
        middle = np.where(middle.astype("float32") > below.astype("float32"), middle, lowest)
        middle = np.clip(middle, *_INSIDE)
        # Saturated probabilities: no threshold within (0, 1) takes 0, or parts 1 from the last one.
        f1 = np.where(is_chosen(lowest, middle) & ~is_chosen(below, middle), f1, -1.0)
        best = np.flatnonzero(np.isclose(f1, f1.max(), rtol=1e-12, atol=0.0))
        nearest = best[np.abs(middle[best] - 0.5).argmin()]
        found.append(float(middle[nearest]) if f1[nearest] >= 0.0 else 0.5)
    return found


def _scores(truth: np.ndarray, predicted: np.ndarray) -> dict[str, Any]:
    """Returns precision, recall, F1 and support of the True of one label, or of all labels."""
    from sklearn import metrics as sklearn_metrics

    found = sklearn_metrics.precision_recall_fscore_support(
        truth, predicted, labels=[True], average=None, zero_division=0
    )
    precision, recall, f1, support = (column[0] for column in found)
    numbers = {"precision": float(precision), "recall": float(recall), "f1": float(f1)}
    return {**numbers, "support": int(support)}


def _checked(right: Any, probabilities: Any, labels: int) -> tuple[np.ndarray, np.ndarray]:
    targets = finite_array("labels", right)
    scores = finite_array("probabilities", probabilities)
    if targets.ndim != 2 or targets.shape != scores.shape or not targets.size:
        raise ValueError(
            "`labels` and `probabilities` must be (examples, labels), one example at least. "
            f"Received: shapes {targets.shape} and {scores.shape}"
        )
    if targets.shape[1] != labels:
        raise ValueError(
            f"`labels` must have a column for each of {labels} names. "
            f"Received: {targets.shape[1]}"
        )
    return targets, scores
