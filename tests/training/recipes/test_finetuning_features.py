"""Runs on the states of a frozen encoder, which are computed once."""

import json

import numpy as np
import pytest

from kbert.models.bert import Bert
from kbert.models.feature_based import FeatureBasedEncoder
from kbert.tasks.load import load
from kbert.training.recipes import finetuning
from kbert.training.recipes.finetuned_model import build_model
from kbert.training.recipes.finetuning import read_run_data, train_once
from kbert.training.runs.run_directory import load_run
from tests.training.eager_steps import eager_steps

TEXTS = ["the film was good", "the plot was dull and very blue"]


@pytest.fixture(scope="module")
def feature_run(tiny, tmp_path_factory):
    """A classifier by a BiLSTM over a mix of all states, whose cache stays."""
    folder = tmp_path_factory.mktemp("features")
    values = {"features": "mix", "head": "bilstm", "lstm_dim": 6, "learning_rate": None}
    values |= {"feature_cache": str(folder / "cache"), "epochs": 2, "batch_size": 12}
    with eager_steps():
        return train_once(tiny.config(folder / "run", **values))


def test_what_stays(feature_run, tiny):
    run = load_run(feature_run)
    assert not (feature_run / "features").exists()
    assert list((feature_run.parent / "cache").glob("*/*.safetensors"))
    model = load(run.model_directory)
    encoder = model.encoder
    assert isinstance(encoder, FeatureBasedEncoder) and encoder.feature_cache is None
    assert (encoder.features, encoder.reader, encoder.reader_dim) == ("mix", "bilstm", 6)
    frozen = Bert.from_pretrained(tiny.encoder)
    for one, two in zip(encoder.encoder.weights, frozen.weights, strict=True):
        if "seed_generator" not in one.path:
            np.testing.assert_array_equal(one, two)
    # The mix of two states with a scale, two layers of two directions, and the head.
    lstm = [4 * 6 * (width + 6 + 1) for width in (16, 12)]
    report = json.loads((feature_run / "report.json").read_text())
    assert report["parameters"] == 2 + 1 + 2 * sum(lstm) + 2 * 12 + 2
    assert run.config.peak_rate == 1e-3
    assert model.predict(TEXTS).shape == (2, 2)


def test_the_next_run_reads_what_is_kept(feature_run, tiny, tmp_path, monkeypatch):
    def encoded(*_):
        raise AssertionError("the encoder ran although its states are there")

    values = {"features": "mix", "feature_cache": str(feature_run.parent / "cache")}
    config = tiny.config(tmp_path / "run", **values, validation=None, epochs=1)
    monkeypatch.setattr("kbert.pipelines.frozen_states._states", lambda *_: encoded)
    with eager_steps():
        run = load_run(train_once(config))
    assert load(run.model_directory).encoder.reader == "linear"


@pytest.mark.parametrize("task", ["question-answering", "span-tagging", "ner"])
def test_tasks_that_read(task, tiny, tmp_path, monkeypatch):
    file = tiny.sentences if task == "ner" else tiny.questions
    kept = []
    monkeypatch.setattr(
        finetuning.EpochRecipe, "fit", lambda self, folder, stop: kept.append((self, folder))
    )
    monkeypatch.setattr(finetuning.EpochRecipe, "finish", lambda self, folder: {})
    config = tiny.reading(tmp_path / "run", task, file, features="second-to-last", head="bilstm")
    train_once(config)
    ((recipe, _),) = kept
    encoder = recipe.model.encoder
    encoder.feature_cache = tmp_path / "cache"
    inputs, targets = next(iter(recipe.batches(0, 0)))
    assert inputs["states"].shape == (*inputs["token_ids"].shape, 16)
    encoder.feature_cache = None
    # What was kept is what the encoder computes, to the bits of float16.
    known = recipe.model(inputs)
    plain = {name: array for name, array in inputs.items() if name != "states"}
    real = inputs["padding_mask"].numpy()
    for one, two in zip(np.asarray(known)[real], np.asarray(recipe.model(plain))[real]):
        np.testing.assert_allclose(one, two, atol=2e-2)


def test_features_of_a_model_of_the_same_task_have_a_new_head(feature_run, tiny, tmp_path):
    run = load_run(feature_run)
    folder = str(run.model_directory)
    config = tiny.config(tmp_path / "o", encoder=folder, features="last", head="bilstm")
    model = build_model(config, read_run_data(config))
    assert model.encoder.hidden_dim == 32 and model.encoder.features == "last"
