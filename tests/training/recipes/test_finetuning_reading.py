"""Runs of tasks that read long texts."""

import json
from pathlib import Path

import numpy as np
import pytest

from kbert.data.questions.squad import read_questions
from kbert.tasks.load import load
from kbert.tasks.question_answering.task import measure_answers
from kbert.training.recipes.finetuning import train_once
from kbert.training.runs.run_directory import load_run
from tests.pinned import check_run


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
