"""Metrics of classification and regression, and those that GLUE reports for each of its tasks.

The numbers come from scikit-learn and SciPy, which are loaded when a number is asked for.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from kbert.metrics.glue_names import GLUE_METRICS, glue_task_name

# The positive class of F1, by name; "1" and 1 mean it too.
_POSITIVE = {"mrpc": "equivalent", "qqp": "duplicate"}


class NotFiniteError(ValueError):
    """A number given to a metric is not finite."""


def glue_metrics(task: str, labels: Any, predictions: Any) -> dict[str, float]:
    """Returns the metrics that GLUE reports for a task, in the order of `GLUE_METRICS`.

    `task` is one of the nine tasks, or "ax"; spellings such as "STS-B" are accepted. Labels and
    predictions, (examples,), are both class names, class indices, or scores.
    """
    from sklearn.metrics import f1_score

    name = glue_task_name(task)
    if name == "stsb":
        metrics = regression_metrics(labels, predictions)
    else:
        labels, predictions = _checked(labels, predictions)
        metrics = {
            "accuracy": float(np.mean(labels == predictions)),
            "matthews": _matthews(labels, predictions),
        }
    if name in _POSITIVE:
        sides = (_is_positive(side, _POSITIVE[name]) for side in (labels, predictions))
        metrics["f1"] = float(f1_score(*sides, zero_division=0))
    return {metric: metrics[metric] for metric in GLUE_METRICS[name]}


def _is_positive(side: np.ndarray, name: str) -> np.ndarray:
    if side.dtype.kind in "biuf":
        return side == 1
    return np.isin(side.astype(str), (name, "1"))


def classification_metrics(
    labels: Any, predictions: Any, names: Sequence[str], probabilities: Any | None = None
) -> dict[str, Any]:
    """Returns the metrics of a classifier as a JSON-serializable dict.

    Labels and predictions, (examples,), are names, or indices into `names`, all classes in the
    model's order; `probabilities` are (examples, classes).

    Returns:
        "accuracy"; "macro_f1" (mean over the classes that occur in labels or predictions);
        "matthews" (0 where either side is constant); for two classes "f1" of `names[1]`;
        "cross_entropy" in nats if probabilities are given; "per_class", for each name
        precision, recall, f1 and support (0 where a ratio is 0 / 0); "confusion", counts with the
        true classes as rows. Probabilities that are not finite are a `NotFiniteError`.
    """
    from sklearn import metrics as sklearn_metrics

    right = _indices("labels", labels, names)
    predicted = _indices("predictions", predictions, names)
    _checked(right, predicted)
    every = np.arange(len(names))
    columns = sklearn_metrics.precision_recall_fscore_support(
        right, predicted, labels=every, zero_division=0
    )
    occurring = np.union1d(right, predicted)
    metrics: dict[str, Any] = {
        "accuracy": float(np.mean(right == predicted)),
        "macro_f1": float(np.mean(columns[2][occurring])),
        "matthews": _matthews(right, predicted),
    }
    if len(names) == 2:
        metrics["f1"] = float(columns[2][1])
    if probabilities is not None:
        array = finite_array("probabilities", probabilities)
        if array.shape != (right.size, len(names)):
            raise ValueError(
                f"`probabilities` must have the shape {(right.size, len(names))}. Received: "
                f"{array.shape}"
            )
        # A probability of 0 for the right class costs log(1 / eps), not infinity.
        chosen = np.clip(array[np.arange(right.size), right], np.finfo("float64").eps, 1.0)
        metrics["cross_entropy"] = float(-np.mean(np.log(chosen)))
    metrics["per_class"] = {
        name: {"precision": float(p), "recall": float(r), "f1": float(f1), "support": int(support)}
        for name, p, r, f1, support in zip(names, *columns)
    }
    confusion = sklearn_metrics.confusion_matrix(right, predicted, labels=every)
    metrics["confusion"] = confusion.tolist()
    return metrics


def regression_metrics(labels: Any, predictions: Any) -> dict[str, float]:
    """Returns Pearson and Spearman correlation and the mean squared error.

    Where the labels or the predictions are all equal (or there is one example) a correlation is
    undefined: it is reported as 0.0, with a `RuntimeWarning`, so that a run that picks its best
    step by it can continue. Values that are not finite are a `NotFiniteError`.
    """
    from scipy import stats

    right = finite_array("labels", labels)
    predicted = finite_array("predictions", predictions)
    if predicted.ndim == 2 and predicted.shape[1] == 1:
        predicted = predicted[:, 0]  # a regression head returns (examples, 1)
    right, predicted = _checked(right, predicted)
    squared_error = float(np.mean(np.square(right - predicted)))
    # Below this the squared deviations underflow to 0, and SciPy returns nan.
    smallest = np.sqrt(np.finfo("float64").tiny)
    if np.ptp(right) < smallest or np.ptp(predicted) < smallest:
        side = "labels" if np.ptp(right) < smallest else "predictions"
        warnings.warn(
            f"The {side} are constant ({right.size} examples), so Pearson and Spearman "
            "correlation are undefined; 0.0 stands for them.",
            RuntimeWarning,
            stacklevel=2,
        )
        return {"pearson": 0.0, "spearman": 0.0, "mse": squared_error}
    return {
        "pearson": float(stats.pearsonr(right, predicted)[0]),
        "spearman": float(stats.spearmanr(right, predicted)[0]),
        "mse": squared_error,
    }


def _checked(labels: Any, predictions: Any) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    # True and 1 are one class, also where names are compared as text.
    labels, predictions = (
        side.astype("int64") if side.dtype == bool else side for side in (labels, predictions)
    )
    if labels.ndim != 1 or labels.shape != predictions.shape or labels.size == 0:
        raise ValueError(
            "`labels` and `predictions` must be one value an example, at least one. Received: "
            f"labels of shape {labels.shape}, predictions of shape {predictions.shape}"
        )
    if (labels.dtype.kind in "UO") != (predictions.dtype.kind in "UO"):
        raise ValueError(
            "`labels` and `predictions` must both be names or both be numbers. Received: labels "
            f"such as {labels[0]!r}, predictions such as {predictions[0]!r}"
        )
    return labels, predictions


def _matthews(labels: np.ndarray, predictions: np.ndarray) -> float:
    """Returns 0 where either side is constant, without scikit-learn's warning for one class."""
    from sklearn import metrics as sklearn_metrics

    if len(np.unique(labels)) == 1 or len(np.unique(predictions)) == 1:
        return 0.0
    return float(sklearn_metrics.matthews_corrcoef(labels, predictions))


def _indices(argument: str, values: Any, names: Sequence[str]) -> np.ndarray:
    """Returns class indices for names or indices, checked against `names`."""
    array = np.asarray(values)
    if array.dtype.kind in "iu":
        wrong = array[(array < 0) | (array >= len(names))]
        if wrong.size:
            raise ValueError(
                f"`{argument}` must be below the number of classes, {len(names)}. Received: "
                f"{wrong[0]}"
            )
        return array
    index = {name: i for i, name in enumerate(names)}
    flat = array.ravel().tolist()
    unknown = [str(value) for value in flat if value not in index]
    if unknown:
        raise ValueError(
            f"`{argument}` must hold names out of {', '.join(names)}, or their indices. Received: "
            f"{unknown[0]!r}"
        )
    return np.array([index[value] for value in flat], dtype="int64")


def finite_array(argument: str, values: Any) -> np.ndarray:
    """Returns numbers as float64, and raises a ValueError if an entry is not a finite number."""
    try:
        array = np.asarray(values, dtype="float64")
    except (TypeError, ValueError) as error:
        raise ValueError(f"`{argument}` must be numbers. Received: {error}") from error
    wrong = np.flatnonzero(~np.isfinite(array))
    if wrong.size:
        raise NotFiniteError(
            f"`{argument}` must be finite numbers. Received: {wrong.size} of {array.size} that "
            f"are not, the first at position {wrong[0]}"
        )
    return array
