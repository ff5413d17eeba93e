import json
import shutil
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from kbert.cli.main import app
from tests.checkpoints.synthetic_marian import write_marian
from tests.small_pipelines import small_encoder


def info(path):
    return CliRunner().invoke(app, ["info", str(path)])


def test_a_run(finished_run):
    found = json.loads(info(finished_run).stdout)
    assert found["kind"] == "run" and found["config"]["epochs"] == 2
    assert found["report"]["examples"]["train"]["count"] == 24
    assert "final" in found["metrics"] and "epochs" not in found["metrics"]


def test_a_run_with_a_damaged_report(finished_run, tmp_path):
    shutil.copytree(finished_run, run := tmp_path / "run")
    (run / "report.json").write_text('{"a":\n')
    result = info(run)
    assert result.exit_code == 2 and "report.json` must be a JSON file" in result.stderr


def test_a_checkpoint_and_a_model(tiny, finished_run):
    found = json.loads(info(tiny.encoder).stdout)
    assert (found["kind"], found["format"], found["heads"]) == ("checkpoint", "kbert", {})
    assert found["config"]["hidden_dim"] == 16 and found["vocabulary"] is True
    found = json.loads(info(finished_run / "model").stdout)
    assert found["task"]["class"] == "Classifier"
    assert found["heads"]["classifier.weight"] == [2, 16]


@pytest.mark.parametrize("form", ["tf1", "huggingface"])
def test_formats_without_tensorflow(tiny, tmp_path, monkeypatch, form):
    folder = str(tmp_path / form)
    result = CliRunner().invoke(app, ["convert", str(tiny.encoder), folder, "--format", form])
    assert result.exit_code == 0, result.output
    as_it_was = json.loads(info(tiny.encoder).stdout)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    found = json.loads(info(folder).stdout)
    same = ("config", "parameters", "dtypes", "vocabulary")
    assert {key: found[key] for key in same} == {key: as_it_was[key] for key in same}


def test_a_folder_of_marian(tmp_path):
    found = json.loads(info(write_marian(tmp_path / "model")).stdout)
    assert (found["kind"], found["format"]) == ("checkpoint", "marian")
    assert found["task"]["class"] == "Translator" and found["parameters"] > 0


def test_what_is_nothing(tmp_path):
    result = info(tmp_path)
    assert result.exit_code == 2 and "`RUN` must be a checkpoint" in result.stderr
    result = info("all-MiniLM-L6")
    assert result.exit_code == 2 and "Did you mean `all-MiniLM-L6-v2`" in result.stderr
    (file := tmp_path / "model.keras").touch()
    result = info(file)
    assert result.exit_code == 2 and "which `kbert.load` reads" in result.stderr


def test_adapters_and_layers_on_a_frozen_encoder_count(tmp_path):
    encoder = small_encoder()
    plain = encoder.save_pretrained(tmp_path / "plain")
    encoder.add_adapter("mine", "lora")
    adapted = encoder.save_pretrained(tmp_path / "adapted")
    counts = [json.loads(info(folder).stdout)["parameters"] for folder in (plain, adapted)]
    assert counts[1] - counts[0] == sum(int(np.prod(v.shape)) for v in encoder.adapters.variables)
