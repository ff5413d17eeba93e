import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from kbert.data.entities.tagged_sentences import TaggedSentences
from kbert.data.questions.question_examples import Answer, QuestionExamples
from kbert.data.questions.squad import read_questions
from kbert.tasks.load import load
from kbert.training.finetuning.evaluation import prepare
from kbert.training.finetuning.reading_evaluation import (
    measure_answers,
    measure_entities,
    measure_spans,
)
from kbert.training.recipes.finetuning import train_once
from kbert.training.runs.run_directory import load_run
from tests.pinned import check_run


def questions(answers):
    count = len(answers)
    return QuestionExamples(
        [f"q{i}" for i in range(count)],
        ["?"] * count,
        ["one two"] * count,
        answers,
        [""] * count,
        "by hand",
        [f"line {i}" for i in range(count)],
    )


class Scripted:
    """A model that gives the answers it was made with."""

    null_threshold = None
    outside_bias = 0.0

    def __init__(self, rows):
        self.rows = rows

    def predict(self, examples):
        return self.rows

    def predict_tags(self, words):
        return self.rows


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


def test_entities():
    model = Scripted([["B-A", "O"]])
    model.labels = ["O", "B-A", "I-A"]
    sentences = TaggedSentences([["a", "b"]], [["B-A", "B-A"]], [0], "by hand", [1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = measure_entities(model, sentences)
    assert (metrics["precision"], metrics["recall"]) == (1.0, 0.5)


def test_entities_of_other_types():
    model = Scripted([["B-A", "O"]])
    model.labels = ["O", "B-A", "I-A"]
    sentences = TaggedSentences([["a", "b"]], [["B-C", "B"]], [0], "by hand", [1])
    message = r"^by hand: the model finds no entities of the types \(none\), C\. Its types: A$"
    with pytest.warns(UserWarning, match=message):
        assert measure_entities(model, sentences)["f1"] == 0


def assert_measured(run, model):
    """The loss of the epoch that stays is that of its weights on the validation questions."""
    assert run.metrics["monitor"] in run.metrics["final"]["validation"]
    examples = read_questions(run.config.validation)
    model.compile()
    expected = model.evaluate((examples.questions, examples.contexts), examples.answers, verbose=0)
    measured = run.metrics["epochs"][0]["validation"]["loss"]
    np.testing.assert_allclose(measured, np.ravel(expected)[0], rtol=1e-5)
    assert (model.max_sequence_length, model.stride) == (12, 2)


@pytest.mark.slow
def test_a_run_of_entities(tiny, tmp_path):
    # Sixteen epochs of four sentences are what it needs to know them by heart.
    values = {"batch_size": 1, "epochs": 16, "learning_rate": 0.02}
    values |= {"validation": None, "test": tiny.sentences}
    config = tiny.reading(tmp_path / "run", "ner", tiny.sentences, **values)
    run = load_run(train_once(config))
    check_run("fine-tuning, ner", run.directory, ("metrics.json", "report.json"))
    assert run.metrics["monitor"] is None and run.metrics["final"]["test"]["f1"] == 1.0


@pytest.mark.slow
def test_a_run_of_spans(tiny, tmp_path, eagerly):
    config = tiny.reading(tmp_path / "run", "span-tagging", tiny.unanswerable, epochs=1)
    run = load_run(train_once(config))
    model = load(run.model_directory)
    assert_measured(run, model)
    check_run("fine-tuning, span-tagging", run.directory, ("metrics.json", "report.json"))
    assert model.outside_bias == run.metrics["final"]["validation"]["outside_bias"]


@pytest.mark.slow
def test_a_run_of_questions_and_what_is_measured_last_chooses_no_threshold(
    tiny, tmp_path, eagerly
):
    """That of the validation questions stays, though another one would be better for the test."""
    rows = Path(tiny.unanswerable).read_text("utf-8").splitlines()
    kept = [row for row in rows if not json.loads(row)["answers"]]
    (file := tmp_path / "test.jsonl").write_text("\n".join([*kept, rows[1]]), encoding="utf-8")
    task = "question-answering"
    config = tiny.reading(tmp_path / "run", task, tiny.unanswerable, test=str(file), epochs=1)
    run = load_run(train_once(config))
    final, model = run.metrics["final"], load(run.model_directory)
    assert_measured(run, model)
    check_run("fine-tuning, question-answering", run.directory, ("metrics.json", "report.json"))
    assert final["test"]["null_threshold"] == model.null_threshold
    assert final["validation"]["null_threshold"] == model.null_threshold
    best = measure_answers(model, read_questions(file), find_threshold=True)[0]
    assert best["null_threshold"] != final["test"]["null_threshold"]


def test_examples_of_another_task_are_refused(tiny, tmp_path):
    config = tiny.reading(tmp_path / "run", "ner", tiny.sentences)
    from kbert.training.finetuning.examples import read_run_data
    from kbert.training.finetuning.model import build_model

    data = read_run_data(config)
    model = build_model(config, data)
    expected = "by hand: the examples must be sentences of tagged words for a EntityRecognizer"
    with pytest.raises(ValueError, match=expected):
        prepare(model, questions([[]]))
