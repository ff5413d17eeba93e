"""`kbert push` to a stand-in for the hub's client."""

import json
import shutil

from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.models.bert import Bert
from kbert.training.config.multi_task_config import MultiTaskConfig
from kbert.training.runs.run_directory import write_config


def push(*arguments):
    return CliRunner().invoke(app, ["push", *map(str, arguments)])


def test_a_run_with_a_card(finished_run, hub):
    result = push(finished_run, "ann/topics", "--private", "--message", "first")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["commit"] == "https://hub/ann/topics/commit/1"
    assert hub.made == {"ann/topics": True} and hub.message == "first"
    model = finished_run / "model"
    assert hub.files.keys() == {*(one.name for one in model.iterdir()), "README.md"}
    assert found["files"] == sorted(hub.files)
    assert hub.files["kbert.json"] == (model / "kbert.json").read_bytes()
    card = hub.files["README.md"].decode()
    assert card.startswith("---\nlibrary_name: kbert\npipeline_tag: text-classification\n")
    assert 'kbert.Classifier.from_pretrained("ann/topics")' in card
    assert not (model / "README.md").exists()


def test_a_folder_keeps_its_own_card(finished_run, hub, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for one in (finished_run / "model").iterdir():
        (folder / one.name).write_bytes(one.read_bytes())
    (folder / "README.md").write_text("my own")
    assert push(folder, "ann/topics").exit_code == 0
    assert hub.files["README.md"] == b"my own" and hub.made == {"ann/topics": False}


def test_errors(finished_run, hub, tmp_path):
    result = push(finished_run, "topics")
    assert result.exit_code == 2
    assert "`REPO` must be OWNER/NAME. Received: 'topics'" in result.stderr
    result = push(tmp_path / "none", "ann/topics")
    assert result.exit_code == 2 and "`MODEL` must be a run or a folder" in result.stderr
    result = push(tmp_path, "ann/topics")
    assert result.exit_code == 2 and "must be a checkpoint" in result.stderr
    Bert.from_pretrained(finished_run / "model").save_pretrained(tmp_path / "tf1", format="tf1")
    result = push(tmp_path / "tf1", "ann/topics")
    assert result.exit_code == 2 and "must have its weights in safetensors" in result.stderr
    both = tmp_path / "both"
    for name in ("rte", "sick"):
        shutil.copytree(finished_run / "model", both / "model" / name)
    tasks = {"rte": {"train": "a.tsv"}, "sick": {"train": "b.tsv"}}
    write_config(MultiTaskConfig.from_dict({"tasks": tasks, "encoder": "e", "output": "o"}), both)
    (both / "metrics.json").write_text("{}")
    result = push(both, "ann/topics")
    assert result.exit_code == 2, result.stderr
    assert f"whose models are {both / 'model' / 'rte'}, {both / 'model' / 'sick'}" in result.stderr
    hub.refuses = ConnectionError("401 Unauthorized\nmore")
    result = push(finished_run, "ann/topics")
    assert result.exit_code == 1
    assert "(ConnectionError: 401 Unauthorized)" in result.stderr and "HF_TOKEN" in result.stderr
