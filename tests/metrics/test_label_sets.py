"""Metrics of several labels, by hand and against scikit-learn; thresholds against a search."""

import numpy as np
import pytest

from kbert.metrics.glue import NotFiniteError
from kbert.metrics.label_sets import best_thresholds, is_chosen, label_set_metrics

NAMES = ["joy", "anger", "love"]
RIGHT = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0], [1, 0, 0]])
SCORES = np.array([[0.9, 0.2, 0.4], [0.1, 0.3, 0.2], [0.6, 0.8, 0.1], [0.5, 0.1, 0.3]])


def test_by_hand():
    # At 1/2: joy of 1, 3, 4 (right 1, 4), anger of 3 (right), love of none (right: 1).
    # All labels: 3 hits, 4 predicted, 4 right. Exact: examples 2 and 4.
    found = label_set_metrics(RIGHT, SCORES, NAMES, 0.5)
    assert found["micro_precision"] == found["micro_recall"] == found["micro_f1"] == 0.75
    assert found["exact_match"] == 0.5
    assert found["macro_f1"] == pytest.approx((0.8 + 1.0 + 0.0) / 3)
    assert found["per_class"]["joy"] == {
        "threshold": 0.5,
        "precision": pytest.approx(2 / 3),
        "recall": 1.0,
        "f1": pytest.approx(0.8),
        "support": 2,
    }
    assert found["per_class"]["love"]["f1"] == 0.0 and found["per_class"]["love"]["support"] == 1
    entropy = -np.log(np.where(RIGHT, SCORES, 1 - SCORES)).mean()
    assert found["cross_entropy"] == pytest.approx(entropy)


def test_thresholds_of_each_label():
    found = label_set_metrics(RIGHT, SCORES, NAMES, [0.7, 0.5, 0.4])
    assert found["exact_match"] == 0.75
    assert [row["threshold"] for row in found["per_class"].values()] == [0.7, 0.5, 0.4]


def test_labels_that_nobody_has_do_not_count_in_the_mean():
    right, scores = np.array([[1, 0], [1, 0]]), np.array([[0.9, 0.1], [0.8, 0.2]])
    assert label_set_metrics(right, scores, ["a", "b"], 0.5)["macro_f1"] == 1.0
    empty = label_set_metrics(right * 0, scores * 0.1, ["a", "b"], 0.5)
    assert (empty["macro_f1"], empty["micro_f1"], empty["exact_match"]) == (0.0, 0.0, 1.0)
    single = label_set_metrics(right[:, :1], scores[:, :1], ["a"], 0.5)
    assert list(single["per_class"]) == ["a"] and single["micro_f1"] == 1.0


def test_scikit_learn():
    from sklearn import metrics

    draw = np.random.default_rng(0)
    right, scores = draw.integers(0, 2, (50, 4)), draw.uniform(size=(50, 4))
    found = label_set_metrics(right, scores, list("abcd"), 0.4)
    predicted = scores >= 0.4
    for average in ("micro", "macro"):
        expected = metrics.f1_score(right, predicted, average=average)
        assert found[f"{average}_f1"] == pytest.approx(expected)
    assert found["exact_match"] == pytest.approx(metrics.accuracy_score(right, predicted))
    expected = np.mean([metrics.log_loss(right[:, i], scores[:, i]) for i in range(4)])
    assert found["cross_entropy"] == pytest.approx(expected)
    expected = metrics.f1_score(right, predicted, average=None)
    assert [row["f1"] for row in found["per_class"].values()] == pytest.approx(list(expected))


def test_the_best_thresholds_by_hand():
    # joy: .9 and .5 are right and .6 not. All three, from 1/2 on: F1 .8; .9 alone: 2/3.
    # anger: .8 alone, above .3: 1/2 lies between. love: .4 alone, in the middle of .3 and .4.
    assert best_thresholds(RIGHT, SCORES) == pytest.approx([0.5, 0.5, 0.35])
    assert best_thresholds(RIGHT * 0, SCORES) == [0.5] * 3


def test_no_threshold_is_better():
    from sklearn.metrics import f1_score

    draw = np.random.default_rng(1)
    right = draw.integers(0, 2, (40, 6))
    scores = (draw.uniform(size=(40, 6)) * 0.5 + 0.3 * right).round(2).astype("float32")
    tuned = best_thresholds(right, scores)
    chosen = is_chosen(scores, tuned)
    for i in range(6):
        every = [f1_score(right[:, i], scores[:, i] >= t) for t in np.unique(scores[:, i])]
        assert f1_score(right[:, i], chosen[:, i]) == pytest.approx(max(every))


def test_neighbours_and_saturated_probabilities():
    low = np.float32(0.7)
    scores = np.array([[low], [np.nextafter(low, np.float32(1))]], "float32")
    right = np.array([[0], [1]])
    assert is_chosen(scores, best_thresholds(right, scores)).tolist() == [[False], [True]]
    scores = np.array([[0.0], [1.0]], "float32")
    for right in ([[0], [1]], [[1], [1]], [[1], [0]]):
        (threshold,) = best_thresholds(np.array(right), scores)
        assert 0 < threshold < 1


def test_a_threshold_within_0_and_1_has_the_f1_it_was_chosen_for():
    # All four would have F1 2/3, but no threshold above 0 takes the third.
    right = np.array([[0], [1], [1], [0]])
    scores = np.array([[1.0], [1.0], [0.0], [0.2]], "float32")
    assert best_thresholds(right, scores) == [0.5]
    assert best_thresholds(right, np.zeros((4, 1))) == [0.5]
    # None parts 1 from its neighbour. With both F1 is 1/2, with the third too 4/5.
    scores = np.array([[1 - 2.0**-24], [1.0], [0.25], [0.125]], "float32")
    assert best_thresholds(right, scores) == [0.1875]


def test_refusals():
    message = r"must be \(examples, labels\), one example .* Received: shapes \(4, 3\) and \(4, 2\)"
    with pytest.raises(ValueError, match=message):
        label_set_metrics(RIGHT, SCORES[:, :2], NAMES, 0.5)
    with pytest.raises(ValueError, match="a column for each of 2 names. Received: 3"):
        label_set_metrics(RIGHT, SCORES, NAMES[:2], 0.5)
    with pytest.raises(NotFiniteError, match="`probabilities` must be finite numbers"):
        best_thresholds(RIGHT, SCORES * np.nan)
