"""Metrics. The expected numbers were worked out by hand from the definitions."""

import json
import math

import numpy as np
import pytest

from kbert.metrics.glue import (
    GLUE_METRICS,
    classification_metrics,
    glue_metrics,
    regression_metrics,
)

# 2 true positives, 1 false negative, 1 false positive, 4 true negatives.
LABELS = [1, 1, 1, 0, 0, 0, 0, 0]
PREDICTIONS = [1, 1, 0, 1, 0, 0, 0, 0]
ACCURACY = 6 / 8
F1 = 2 * 2 / (2 * 2 + 1 + 1)
MATTHEWS = (2 * 4 - 1 * 1) / math.sqrt(3 * 3 * 5 * 5)


def named(values, names):
    return [names[value] for value in values]


@pytest.mark.parametrize(
    "task, expected",
    [
        ("cola", {"matthews": MATTHEWS}),
        ("SST-2", {"accuracy": ACCURACY}),
        ("MRPC", {"f1": F1, "accuracy": ACCURACY}),
        ("qqp", {"f1": F1, "accuracy": ACCURACY}),
        ("mnli", {"accuracy": ACCURACY}),
        ("qnli", {"accuracy": ACCURACY}),
        ("rte", {"accuracy": ACCURACY}),
        ("wnli", {"accuracy": ACCURACY}),
        ("ax", {"matthews": MATTHEWS}),
    ],
)
def test_classification_tasks(task, expected):
    assert glue_metrics(task, LABELS, PREDICTIONS) == pytest.approx(expected)


def test_f1_counts_the_second_class_by_name_too():
    names = ["not_equivalent", "equivalent"]
    metrics = glue_metrics("mrpc", named(LABELS, names), named(PREDICTIONS, names))
    assert metrics == pytest.approx({"f1": F1, "accuracy": ACCURACY})
    digits = glue_metrics("qqp", named(LABELS, "01"), named(PREDICTIONS, "01"))
    assert digits == pytest.approx({"f1": F1, "accuracy": ACCURACY})


def test_matthews_of_three_classes():
    # Gorodkin (2004): (c s - sum p_k t_k) / sqrt((s^2 - sum p_k^2)(s^2 - sum t_k^2)), with s = 6
    # samples, c = 5 correct, t = (2, 2, 2) and p = (2, 1, 3): sum p_k t_k = 12, sum p_k^2 = 14.
    labels = ["e", "e", "n", "n", "c", "c"]
    predictions = ["e", "e", "n", "c", "c", "c"]
    expected = (5 * 6 - 12) / math.sqrt((36 - 14) * (36 - 12))
    assert glue_metrics("ax", labels, predictions)["matthews"] == pytest.approx(expected)


def test_stsb():
    # Deviations from the means: (-1.5, -0.5, 0.5, 1.5) and (-6.5, -3.5, 1.5, 8.5).
    metrics = glue_metrics("STS-B", [1, 2, 3, 4], [1, 4, 9, 16])
    assert list(metrics) == ["pearson", "spearman"]
    assert metrics["pearson"] == pytest.approx(25 / math.sqrt(5 * 129))
    assert metrics["spearman"] == pytest.approx(1.0)


def test_every_task_returns_its_metrics():
    for task, names in GLUE_METRICS.items():
        assert tuple(glue_metrics(task, [0, 1, 1], [0, 1, 0])) == names


def test_regression_metrics():
    metrics = regression_metrics([1, 2, 3, 4], np.array([[1.0], [2.0], [4.0], [3.0]]))
    assert metrics == pytest.approx({"pearson": 0.8, "spearman": 0.8, "mse": 0.5})


@pytest.mark.parametrize(
    "labels, predictions, side, mse",
    [
        ([1.0, 2.0, 3.0], [2.0, 2.0, 2.0], "predictions", 2 / 3),
        ([2.0, 2.0], [1.0, 2.0], "labels", 0.5),
        ([1.0], [3.0], "labels", 4.0),
        ([1.0, 1.0, 3.0], [0.0, 1e-200, 2e-200], "predictions", 11 / 3),
    ],
)
def test_undefined_correlations_are_zero_with_a_warning(labels, predictions, side, mse):
    with pytest.warns(RuntimeWarning, match=f"The {side} are constant .*; 0.0 stands for them"):
        metrics = regression_metrics(labels, predictions)
    assert metrics == pytest.approx({"pearson": 0.0, "spearman": 0.0, "mse": mse})


def test_constant_classes(recwarn):
    assert glue_metrics("cola", [1, 0, 1], [1, 1, 1]) == {"matthews": 0.0}
    assert glue_metrics("cola", [1, 1], [1, 1]) == {"matthews": 0.0}
    assert glue_metrics("mrpc", [1, 0], [0, 0]) == {"f1": 0.0, "accuracy": 0.5}
    assert not recwarn.list


def test_classification_metrics_of_two_classes():
    names = ["no", "yes"]
    probabilities = np.full((8, 2), 0.5)
    metrics = classification_metrics(LABELS, PREDICTIONS, names, probabilities)
    no_f1 = 2 * 4 / (2 * 4 + 1 + 1)
    assert metrics["accuracy"] == pytest.approx(ACCURACY)
    assert metrics["f1"] == pytest.approx(F1)
    assert metrics["macro_f1"] == pytest.approx((F1 + no_f1) / 2)
    assert metrics["matthews"] == pytest.approx(MATTHEWS)
    assert metrics["cross_entropy"] == pytest.approx(math.log(2))
    assert metrics["confusion"] == [[4, 1], [1, 2]]
    assert metrics["per_class"]["yes"] == pytest.approx(
        {"precision": 2 / 3, "recall": 2 / 3, "f1": F1, "support": 3}
    )
    assert metrics["per_class"]["no"]["support"] == 5
    json.dumps(metrics)


def test_classification_metrics_by_name_with_an_absent_class():
    # "c" occurs nowhere and must not pull the mean down.
    metrics = classification_metrics(["a", "a", "b"], ["a", "b", "b"], ["a", "b", "c"])
    assert metrics["macro_f1"] == pytest.approx(2 / 3)
    assert metrics["per_class"]["c"] == {"precision": 0, "recall": 0, "f1": 0, "support": 0}
    assert "f1" not in metrics and "cross_entropy" not in metrics
    assert metrics["confusion"] == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]


def test_a_zero_probability_costs_much_but_not_infinity():
    metrics = classification_metrics([0], [1], ["a", "b"], [[0.0, 1.0]])
    assert metrics["cross_entropy"] == pytest.approx(-math.log(np.finfo("float64").eps))


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: glue_metrics("sst2", [0, 1], [0]), r"one value an example.*\(2,\).*\(1,\)"),
        (lambda: glue_metrics("sst2", [], []), r"must be one value an example, at least one"),
        (lambda: glue_metrics("sst2", ["positive"], [1]), r"both be names or both be numbers"),
        (lambda: glue_metrics("imdb", [0], [0]), "task of GLUE must be one of"),
        (
            lambda: glue_metrics("stsb", [1.0, 2.0], [1.0, float("nan")]),
            r"`predictions` must be finite numbers\. Received: 1 of 2 .* at position 1",
        ),
        (lambda: regression_metrics(["a"], [1.0]), r"`labels` must be numbers"),
        (
            lambda: classification_metrics(["a"], ["x"], ["a", "b"]),
            r"`predictions` must hold names out of a, b, .*Received: 'x'",
        ),
        (
            lambda: classification_metrics([2], [0], ["a", "b"]),
            r"`labels` must be below the number of classes, 2\. Received: 2",
        ),
        (
            lambda: classification_metrics([0], [0], ["a", "b"], [[1.0]]),
            r"`probabilities` must have the shape \(1, 2\)\. Received: \(1, 1\)",
        ),
        (
            lambda: classification_metrics([0], [0], ["a", "b"], [[np.inf, 0.0]]),
            r"`probabilities` must be finite numbers",
        ),
    ],
)
def test_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_class_numbers_may_be_floats():
    assert glue_metrics("mrpc", [1.0, 0.0, 1.0], [1.0, 0.0, 1.0]) == {"accuracy": 1.0, "f1": 1.0}


def test_booleans_are_class_numbers():
    labels = np.array(LABELS) == 1
    assert glue_metrics("mrpc", labels, PREDICTIONS) == glue_metrics("mrpc", LABELS, PREDICTIONS)
