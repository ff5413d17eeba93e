import numpy as np
import pytest

from kbert.training.finetuning.evaluation import measure, monitored_metric
from kbert.training.runs.monitor import numbers

PROBABILITIES = np.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.7, 0.3]])


def test_metrics_of_classes_by_hand():
    # Right 0, 1, 1, 1; predicted 0, 1, 1, 0: accuracy 3/4; F1 of class 1: 2*2/(2*2+1) = 0.8.
    found = measure(np.array([0, 1, 1, 1]), PROBABILITIES, ["a", "b"])
    assert found["accuracy"] == 0.75 and found["f1"] == pytest.approx(0.8)
    assert found["confusion"] == [[1, 0], [1, 2]]
    entropy = -np.log([0.9, 0.6, 0.8, 0.3]).mean()
    assert found["cross_entropy"] == pytest.approx(entropy)
    assert set(numbers(found)) == {"accuracy", "macro_f1", "matthews", "f1", "cross_entropy"}


def test_the_likeliest_class_of_a_soft_label_counts():
    soft = np.array([[0.6, 0.4], [0.1, 0.9], [0.2, 0.8], [0.3, 0.7]])
    assert measure(soft, PROBABILITIES, ["a", "b"])["accuracy"] == 0.75


def test_official_metrics_come_first():
    names = ["not_equivalent", "equivalent"]
    found = measure(np.array([0, 1, 1, 1]), PROBABILITIES, names, "mrpc")
    assert list(found)[:2] == ["f1", "accuracy"]
    assert found["f1"] == pytest.approx(0.8)


def test_scores_and_choices():
    found = measure(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
    assert found["pearson"] == pytest.approx(1.0) and found["mse"] == pytest.approx(14 / 3)
    assert list(measure(np.array([0, 1, 1, 1]), PROBABILITIES)) == ["accuracy", "cross_entropy"]


def test_the_monitored_metric():
    assert monitored_metric("classification", None, ["a", "b"], None) == "accuracy"
    assert monitored_metric("classification", None, ["a", "b"], "cola") == "matthews"
    assert monitored_metric("classification", "f1", ["a", "b"], None) == "f1"
    assert monitored_metric("regression", None, None, None) == "pearson"
    assert monitored_metric("multiple-choice", "cross_entropy", None, None) == "cross_entropy"
    with pytest.raises(ValueError, match="`monitor` must be one of .*Received: monitor='f1'"):
        monitored_metric("classification", "f1", ["a", "b", "c"], None)
