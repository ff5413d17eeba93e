import pytest

from kbert.data.questions.question_examples import Answer
from kbert.tasks.question_answering.task import TASK, measure_answers
from tests.small_pipelines import small_question_answerer
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


def test_the_loss_leaves_out_questions_whose_answers_are_misplaced():
    moved, gone, good = Answer("two", 0), Answer("six", 4), Answer("two", 4)
    asked = questions([[moved], [gone], [good], []])
    model = small_question_answerer()
    prepared = TASK.prepare(model, asked)
    # By hand: [CLS] ? [SEP] o ##n ##e t ##w ##o [SEP]; no answer is [CLS].
    assert prepared.right.tolist() == [[[6, 8]], [[6, 8]], [[0, 0]]]
    assert prepared.examples is asked  # metrics count all of them
    lost = questions([[gone]])
    assert TASK.prepare(model, lost).right.tolist() == [[[0, 0]]]
