import numpy as np
import pytest

from kbert.data.questions.question_examples import Answer
from kbert.tasks.span_tagging.task import measure_spans
from tests.tasks.scripted_reading import Scripted, questions


def test_spans():
    found = {"starts": np.array([0, 4]), "ends": np.array([3, 6]), "count": 2}
    metrics = measure_spans(Scripted([found]), questions([[Answer("one", 0), Answer("two", 4)]]))
    # By hand: one of two spans is whole; 5 of the 6 characters were found, none too many.
    assert metrics["span_exact_f1"] == 0.5
    assert metrics["span_overlap_recall"] == pytest.approx(5 / 6)
    assert metrics["span_overlap_precision"] == 1.0


def test_the_bias_that_is_best_for_the_questions():
    class Marking(Scripted):
        def spans_with_biases(self, asked, contexts):
            assert (asked, contexts) == (["?"] * 2, ["one two"] * 2)
            many, few = [[(0, 3), (4, 7)], [(0, 3)]], [[(0, 3)], []]
            return {-2.0: many, -1.0: few, -0.5: few, 0.0: [[], []]}

    model = Marking([])
    # By hand: with -1 and -0.5 two of two spans are right, with -2 two of four.
    metrics = measure_spans(model, questions([[Answer("one", 0)], []]), find_bias=True)
    assert metrics["span_exact_f1"] == 1.0 and metrics["span_overlap_f1"] == 1.0
    assert model.outside_bias == metrics["outside_bias"] == -0.5
