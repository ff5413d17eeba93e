import shutil

import pytest

import kbert
from kbert.training.runs.load_model import load_model


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
