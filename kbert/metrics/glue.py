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
    """Returns the metrics that GLUE reports for a task.

    Args:
        task: one of the nine tasks, or "ax"; spellings such as "STS-B" are accepted.
        labels: the labels, shape (examples,): class names, class indices, or scores.
        predictions: the predictions, of the same kind and shape.

    Returns:
        {metric: value}, in the order of `GLUE_METRICS`.

    Raises:
        ValueError: unknown task, no examples, or labels and predictions that do not match.
    """
    name = glue_task_name(task)
    if name == "stsb":
        return _only(regression_metrics(labels, predictions), name)
    labels, predictions = _checked(labels, predictions)
    metrics = {
        "accuracy": float(np.mean(labels == predictions)),
        "matthews": _matthews(labels, predictions),
    }
    if name in _POSITIVE:
        positive = (_POSITIVE[name], "1")
        metrics["f1"] = _f1(
            np.isin(labels.astype(str), positive), np.isin(predictions.astype(str), positive)
        )
    return _only(metrics, name)


def classification_metrics(
    labels: Any, predictions: Any, names: Sequence[str], probabilities: Any | None = None
) -> dict[str, Any]:
    """Returns the metrics of a classifier as a JSON-serializable dict.

    Args:
        labels: the true classes, shape (examples,): names or indices into `names`.
        predictions: the predicted classes, names or indices, shape (examples,).
        names: all classes in the model's order.
        probabilities: predicted probabilities, shape (examples, classes), or None.

    Returns:
        "accuracy"; "macro_f1" (mean over the classes that occur in labels or predictions);
        "matthews" (0 where either side is constant); for two classes "f1" of `names[1]`;
        "cross_entropy" in nats if probabilities are given; "per_class", for each name
        precision, recall, f1 and support (0 where a ratio is 0 / 0); "confusion", counts with the
        true classes as rows.

    Raises:
        ValueError: no examples, unequal lengths, an unknown class, or probabilities of another
            shape or that are not finite.
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
        metrics["cross_entropy"] = _cross_entropy(right, probabilities, len(names))
    metrics["per_class"] = {
        name: {
            "precision": float(columns[0][i]),
            "recall": float(columns[1][i]),
            "f1": float(columns[2][i]),
            "support": int(columns[3][i]),
        }
        for i, name in enumerate(names)
    }
    confusion = sklearn_metrics.confusion_matrix(right, predicted, labels=every)
    metrics["confusion"] = confusion.tolist()
    return metrics


def regression_metrics(labels: Any, predictions: Any) -> dict[str, float]:
    """Returns Pearson and Spearman correlation and the mean squared error.

    Where the labels or the predictions are all equal (or there is one example) a correlation is
    undefined: it is reported as 0.0, with a `RuntimeWarning`, so that a run that picks its best
    step by it can continue.

    Args:
        labels: the true scores, shape (examples,).
        predictions: the predicted scores, shape (examples,) or (examples, 1).

    Raises:
        ValueError: no examples, unequal lengths, or values that are not finite numbers.
    """
    from scipy import stats

    right = _finite("labels", labels)
    predicted = _finite("predictions", predictions)
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


def _only(metrics: dict[str, float], task: str) -> dict[str, float]:
    return {name: metrics[name] for name in GLUE_METRICS[task]}


def _checked(labels: Any, predictions: Any) -> tuple[np.ndarray, np.ndarray]:
    labels, predictions = np.asarray(labels), np.asarray(predictions)
    # True and 1 are one class, also where names are compared as text.
    labels = labels.astype("int64") if labels.dtype == bool else labels
    predictions = predictions.astype("int64") if predictions.dtype == bool else predictions
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


def _f1(labels: np.ndarray, predictions: np.ndarray) -> float:
    from sklearn import metrics as sklearn_metrics

    return float(sklearn_metrics.f1_score(labels, predictions, zero_division=0))


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
    unknown = [str(value) for value in array.ravel().tolist() if value not in index]
    if unknown:
        raise ValueError(
            f"`{argument}` must hold names out of {', '.join(names)}, or their indices. Received: "
            f"{unknown[0]!r}"
        )
    return np.array([index[value] for value in array.ravel().tolist()], dtype="int64")


def _finite(argument: str, values: Any) -> np.ndarray:
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


def _cross_entropy(labels: np.ndarray, probabilities: Any, classes: int) -> float:
    array = _finite("probabilities", probabilities)
    if array.shape != (labels.size, classes):
        raise ValueError(
            f"`probabilities` must have the shape {(labels.size, classes)}. Received: "
            f"{array.shape}"
        )
    # A probability of 0 for the right class costs log(1 / eps), not infinity.
    chosen = np.clip(array[np.arange(labels.size), labels], np.finfo("float64").eps, 1.0)
    return float(-np.mean(np.log(chosen)))
