"""Labelled examples that a model is trained and measured on."""

import numpy as np
import pytest

from kbert.tasks.inputs import Prepared
from kbert.tasks.ner.task import TASK as NER
from kbert.tasks.question_answering.task import TASK
from kbert.training.recipes.finetuned_model import build_model
from kbert.training.recipes.finetuning import read_run_data
from tests.tasks.scripted_reading import questions


class Input:
    def predict(self, model):
        return model


def test_predictions_are_measured_against_the_targets():
    prepared = Prepared(Input(), np.array([1, 2]), lambda right, found: {"sum": right + found})
    assert prepared.measured(np.array([3, 4]))["sum"].tolist() == [4, 6]
    assert prepared.trained(None) is prepared and prepared.validating(None) is prepared


def test_validation_of_readers_tunes_and_has_a_loss(tiny, tmp_path, monkeypatch):
    config = tiny.reading(tmp_path / "run", "question-answering", tiny.unanswerable)
    data = read_run_data(config)
    model = build_model(config, data)
    model.compile()
    part = TASK.prepare(model, data.train)
    assert "loss" not in part.measured(model) and model.null_threshold is None
    found = part.validating(None).measured(model)
    assert found["loss"] > 0 and found["null_threshold"] == model.null_threshold is not None
    fewer = part.trained(config.with_values(other_windows=0))
    assert len(fewer.input.lengths) < len(part.input.lengths)


def test_examples_of_another_task_are_refused(tiny, tmp_path):
    config = tiny.reading(tmp_path / "run", "ner", tiny.sentences)
    model = build_model(config, read_run_data(config))
    expected = "by hand: the examples must be sentences of tagged words for a EntityRecognizer"
    with pytest.raises(ValueError, match=expected):
        NER.prepare(model, questions([[]]))
