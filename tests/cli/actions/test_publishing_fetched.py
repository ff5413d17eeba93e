"""What `kbert push` sent is a model again by its name on the hub."""

import json
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub.utils import filter_repo_objects
from typer.testing import CliRunner

import kbert
from kbert.cli.actions.publishing import push_model
from kbert.cli.main import app
from kbert.pipelines.saved_pipeline import save_adapters
from tests.small_captioner import small_captioner
from tests.small_pipelines import small_classifier
from tests.small_translator import small_translator

NAME = "ann/model"


@pytest.fixture
def fetched(hub, monkeypatch, tmp_path):
    """The hub gives what was sent to it, the files that are asked for."""

    def download(repo_id, revision, allow_patterns):
        assert repo_id in hub.made and revision is None
        folder = tmp_path / "snapshot"
        for name in filter_repo_objects(hub.files, allow_patterns=allow_patterns):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(hub.files[name])
        return str(folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.chdir(tmp_path)


def adapters(folder: Path) -> kbert.Classifier:
    """A classifier with an adapter, saved as what it has beyond an encoder."""
    base = folder.with_name("base")
    small_classifier().save_pretrained(base)
    labels = ["up", "down"]
    model = kbert.Classifier.from_pretrained(base, labels=labels, from_other_task=True)
    model.encoder.add_adapter("mine", "pfeiffer")
    save_adapters(model, folder, str(base), dtype="float32")
    return model


def saved(folder: Path, model):
    model.save_pretrained(folder)
    return model


def shortlisted(folder: Path) -> kbert.Translator:
    model = small_translator()
    model.learn_shortlist(["a b", "b c"], ["c d", "d a"], translations=3, everywhere=2)
    return saved(folder, model)


MODELS = {
    "classifier": lambda folder: saved(folder, small_classifier()),
    "adapters": adapters,
    "translator": lambda folder: saved(folder, small_translator()),
    "translator with a shortlist": shortlisted,
    "fused translator": lambda folder: saved(folder, small_translator(fused=True)),
    "captioner": lambda folder: saved(folder, small_captioner()),
}


@pytest.mark.parametrize("kind", MODELS)
def test_it_is_the_same_model(kind, fetched, hub, tmp_path):
    model = MODELS[kind](tmp_path / "model")
    sent = push_model(tmp_path / "model", NAME, private=False, message="first")
    assert sent["files"] == sorted(hub.files)
    for again in (kbert.load(NAME), type(model).from_pretrained(NAME)):
        assert type(again) is type(model) and len(again.weights) == len(model.weights) > 4
        for one, other in zip(again.weights, model.weights, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=one.path)
        learned = getattr(model, "shortlist", None)
        if learned is not None:
            np.testing.assert_array_equal(again.shortlist.translations, learned.translations)


def test_the_command_line_takes_the_name_of_a_translator(fetched, tmp_path):
    small_translator().save_pretrained(tmp_path / "model")
    push_model(tmp_path / "model", NAME, private=False, message="first")
    result = CliRunner().invoke(app, ["info", NAME])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["task"]["class"] == "Translator"
    result = CliRunner().invoke(app, ["convert", NAME, "copy", "--format", "huggingface"])
    assert "one of kbert, ctranslate2 for a translator" in result.stderr
    answer = small_translator().answers(["a woman"])[0]["translation"]
    result = CliRunner().invoke(app, ["predict", NAME, "--text", "a woman"])
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["translation"] == answer
