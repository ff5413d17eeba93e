import shutil

import numpy as np
import pytest

import kbert
from kbert.data.classification.text_pairs import TextExamples
from kbert.training.runs.load_model import load_model, predict_average
from tests.small_pipelines import small_multi_label_classifier


def test_a_run_and_the_folder_of_its_model_give_the_same_model(finished_run):
    texts = ["a text"]
    of_run, of_folder = load_model(finished_run), load_model(finished_run / "model")
    assert (of_run.predict(texts) == of_folder.predict(texts)).all()


def test_every_way_of_loading_takes_a_finished_run(finished_run, tmp_path):
    texts = ["a text"]
    expected = load_model(finished_run).predict(texts)
    for load in (kbert.load, kbert.Classifier.from_pretrained):
        assert (load(finished_run).predict(texts) == expected).all()
    unfinished = shutil.copytree(finished_run, tmp_path / "run")
    (unfinished / "INCOMPLETE").touch()
    with pytest.raises(ValueError, match="`path` must be a checkpoint"):
        kbert.load(unfinished)


def test_an_encoder_alone_is_no_model(tiny):
    with pytest.raises(ValueError, match="must hold one of .*an encoder without a task"):
        load_model(tiny.encoder)


def test_the_mean_of_probabilities_is_measured_at_the_mean_of_thresholds(tmp_path):
    texts, sets = ["a good film", "bad", ""], [["joy"], ["anger", "love"], []]
    examples = TextExamples(texts, None, sets, None, "here", [1, 2, 3])
    folders, found = [], []
    for seed, threshold in ((1, 0.5), (2, [0.1, 0.3, 0.9])):
        model = small_multi_label_classifier(seed=seed, threshold=threshold)
        folders.append(model.save_pretrained(tmp_path / str(seed)))
        found.append(model.predict(texts))
    averaged = predict_average(folders, examples)
    np.testing.assert_allclose(averaged.predictions, np.mean(found, axis=0), atol=1e-5)
    bounds = [row["threshold"] for row in averaged.measured(examples, None)["per_class"].values()]
    assert bounds == pytest.approx([0.3, 0.4, 0.7])
