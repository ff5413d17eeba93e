"""A classifier on another encoder than BERT: training, files and exports."""

import json
from pathlib import Path

import keras
import numpy as np
import pytest

import kbert
from kbert.export_check.check import check
from kbert.models.albert import Albert
from kbert.tasks.classification.model import Classifier
from tests.small_pipelines import TOKENIZER, VOCABULARY, computed

TEXTS = ["a good film", "very bad !", "the film", "good good"] * 4
LABELS = ["yes", "no", "no", "yes"] * 4


@pytest.fixture(scope="module")
def trained() -> Classifier:
    keras.utils.set_random_seed(3)
    encoder = Albert(len(VOCABULARY), 16, 3, 2, 32, 8, 2, 32, initializer_range=0.2)
    model = Classifier(encoder, TOKENIZER, ["no", "yes"], max_sequence_length=24, dropout=0.0)
    # A few steps take less than a graph of one.
    model.compile(keras.optimizers.Adam(3e-3), run_eagerly=True)
    before = [np.asarray(variable.numpy()) for variable in model.trainable_variables]
    history = model.fit(TEXTS, LABELS, epochs=3, batch_size=8, verbose=0).history
    assert history["loss"][-1] < history["loss"][0]
    for variable, old in zip(model.trainable_variables, before, strict=True):
        assert np.any(np.asarray(variable.numpy()) != old), variable.path
    return model


@pytest.mark.parametrize("format", ["kbert", "huggingface"])
def test_folders(trained: Classifier, tmp_path: Path, format: str):
    again = kbert.load(trained.save_pretrained(tmp_path / "model", format=format))
    assert type(again) is Classifier and type(again.encoder) is Albert
    assert again.label_names == trained.label_names
    if format == "huggingface":
        config = json.loads((tmp_path / "model" / "config.json").read_text())
        assert config["classifier_dropout_prob"] == 0.0 and "classifier_dropout" not in config
    np.testing.assert_allclose(computed(again, TEXTS[:4]), computed(trained, TEXTS[:4]), atol=1e-6)


def test_a_keras_file(trained: Classifier, tmp_path: Path):
    trained.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(computed(again, TEXTS[:4]), computed(trained, TEXTS[:4]), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "int8"])
def test_an_export(trained: Classifier, tmp_path: Path, precision: str):
    report = check(kbert.export(trained, tmp_path, "topics", precision=precision))
    assert report.passed(), report.problems


def test_adapters(trained: Classifier, tmp_path: Path):
    folder = trained.save_pretrained(tmp_path / "model")
    adapted = Classifier.from_pretrained(folder, adapter="lora")
    assert adapted.encoder.active_adapters == ["task"]
    np.testing.assert_allclose(computed(adapted, TEXTS), computed(trained, TEXTS), atol=1e-6)
