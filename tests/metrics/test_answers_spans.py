"""Metrics of several answers. Expected numbers by hand."""

import numpy as np
import pytest

from kbert.metrics.answers import exact_and_overlap_f1


def test_by_hand():
    true = [[(0, 10), (20, 30)], [(5, 15)], []]
    predicted = [[(0, 10), (25, 35)], [], [(0, 4)]]
    metrics = exact_and_overlap_f1(true, predicted)
    # Exact: 1 of 3 predicted, 1 of 3 right ones. Characters: 10 + 5 shared, 24 predicted, 30 right.
    assert metrics == pytest.approx(
        {
            "span_exact_precision": 1 / 3,
            "span_exact_recall": 1 / 3,
            "span_exact_f1": 1 / 3,
            "span_overlap_precision": 15 / 24,
            "span_overlap_recall": 15 / 30,
            "span_overlap_f1": 2 * 15 / 54,
        }
    )


def test_all_right_and_nothing_there():
    spans = [[(3, 5), (7, 8)], []]
    assert set(exact_and_overlap_f1(spans, spans).values()) == {1.0}
    assert set(exact_and_overlap_f1([[], []], [[], []]).values()) == {0.0}
    assert set(exact_and_overlap_f1([[(0, 1)]], [[]]).values()) == {0.0}


def test_characters_count_once():
    # Annotators overlap: (0, 6) and (4, 10) cover ten characters, twice the same span counts once.
    metrics = exact_and_overlap_f1([[(0, 6), (4, 10), (0, 6)]], [[(0, 10), (2, 3)]])
    assert metrics["span_overlap_recall"] == metrics["span_overlap_precision"] == 1.0
    assert metrics["span_exact_recall"] == 0.0
    metrics = exact_and_overlap_f1([[(0, 6), (0, 6)]], [[(0, 6)]])
    assert metrics["span_exact_recall"] == 1.0


def test_neighbours_are_two_spans_but_one_piece():
    metrics = exact_and_overlap_f1([[(0, 5), (5, 9)]], [[(0, 9)]])
    assert metrics["span_exact_f1"] == 0.0
    assert metrics["span_overlap_f1"] == 1.0


def test_against_sets_of_characters():
    generator = np.random.default_rng(0)

    def draw():
        starts = generator.integers(0, 30, generator.integers(0, 5))
        return [(int(s), int(s + generator.integers(1, 9))) for s in starts]

    def covered(spans):
        return {i for start, end in spans for i in range(start, end)}

    true, predicted = [draw() for _ in range(50)], [draw() for _ in range(50)]
    shared = sum(len(covered(t) & covered(p)) for t, p in zip(true, predicted))
    found = exact_and_overlap_f1(true, predicted)
    assert found["span_overlap_precision"] == shared / sum(len(covered(p)) for p in predicted)
    assert found["span_overlap_recall"] == shared / sum(len(covered(t)) for t in true)


def test_numpy_spans():
    spans = [np.array([[0, 4], [6, 9]]), np.zeros((0, 2), "int32")]
    assert exact_and_overlap_f1(spans, spans)["span_exact_f1"] == 1.0


@pytest.mark.parametrize(
    "true, predicted, message",
    [
        ([], [], r"must hold the same questions, at least one\. Received: 0 and 0 questions"),
        ([[]], [[], []], r"Received: 1 and 2 questions"),
        ([[(3, 3)]], [[]], r"`true_spans` must hold pairs .*Received: \(3, 3\) for question 0"),
        ([[], []], [[], [(-1, 3)]], r"`predicted_spans` must .*\(-1, 3\) for question 1"),
        ([[(1, 2, 3)]], [[]], r"`true_spans` must hold pairs of a start and an end behind it"),
    ],
)
def test_errors(true, predicted, message):
    with pytest.raises(ValueError, match=message):
        exact_and_overlap_f1(true, predicted)
