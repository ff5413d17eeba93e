import pytest

from kbert.data.questions.question_examples import Answer
from kbert.tasks.question_answering.task import measure_answers
from tests.tasks.scripted_reading import Scripted, questions


def row(text, score):
    return {"answer": text.encode(), "nbest_answer": [text.encode()], "null_score": score}


def test_answers_of_squad_1():
    one, two = Answer("one", 0), Answer("two", 4)
    model = Scripted([row("One!", 0.0), row("one", 0.0)])
    metrics, answers = measure_answers(model, questions([[one], [two]]), find_threshold=True)
    # By hand: the first is right but for case and mark, the second wrong.
    assert metrics == {"exact_match": 50.0, "f1": 50.0, "total": 2}
    assert answers == {"q0": "One!", "q1": "one"} and model.null_threshold is None


def test_the_threshold_for_questions_without_an_answer():
    one = Answer("one", 0)
    model = Scripted([row("one", -1.0), row("one", 0.5), row("two", 2.0)])
    examples = questions([[one], [one], []])
    metrics, answers = measure_answers(model, examples, find_threshold=True)
    # By hand: any threshold from 0.5 to below 2 answers all three rightly.
    assert 0.5 <= model.null_threshold < 2.0
    assert metrics["f1"] == metrics["exact_match"] == 100.0
    assert answers == {"q0": "one", "q1": "one", "q2": ""}
    model.null_threshold = -0.5
    metrics, answers = measure_answers(model, examples)
    assert answers == {"q0": "one", "q1": "", "q2": ""} and model.null_threshold == -0.5
    assert metrics["exact_match"] == pytest.approx(200 / 3)
