import json
import shutil

import yaml
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.training.runs.run_directory import load_run, write_json


def invoke(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_a_run_from_file_and_options(tiny, tmp_path):
    values = tiny.values(tmp_path / "from_file", epochs=9, batch_size=4)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(values))
    output = tmp_path / "run"
    result = invoke("--config", file, "--epochs", 1, "--output", output, "--label", "label")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)  # and nothing else is on stdout
    assert found["run"] == str(output) and found["model"] == str(output / "model")
    run = load_run(output)
    assert (run.config.epochs, run.config.batch_size, run.config.label) == (1, 4, "label")
    assert found["final"] == run.metrics["final"] and found["monitor"] == "accuracy"
    assert "epoch 1/1: loss" in result.stderr and "train: 24 examples" in result.stderr
    stages = [line[:-4] for line in result.stderr.splitlines() if line.endswith(" ...")]
    assert stages == [
        "loading TensorFlow",
        f"reading {tiny.texts['train']}",
        f"reading {tiny.texts['validation']}",
        f"loading the encoder {tiny.encoder}",
        "tokenizing",
        "compiling the first step",
        "writing the model",
        "measuring the model on the validation examples",
    ]
    assert " ..." not in (output / "log.txt").read_text()
    again = invoke("--config", file, "--output", output)
    assert again.exit_code == 2 and "unless overwrite is true" in again.stderr


def test_the_best_point_of_a_grid_has_values(finished_run, tiny, tmp_path, monkeypatch):
    run = shutil.copytree(finished_run, tmp_path / "run")
    best = {"best": "grid-2", "best_values": {"batch_size": 32, "learning_rate": 5e-5}}
    write_json({**load_run(run).metrics, **best}, run / "metrics.json")
    monkeypatch.setattr("kbert.training.run.train", lambda config: run)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(tiny.values(tmp_path / "new", grid=True)))
    result = invoke("--config", file)
    assert result.exit_code == 0 and best.items() <= json.loads(result.stdout).items()


def test_without_held_out_texts_there_are_no_metrics(finished_run, tiny, tmp_path, monkeypatch):
    run = shutil.copytree(finished_run, tmp_path / "run")
    write_json({**load_run(run).metrics, "monitor": None, "final": {}}, run / "metrics.json")
    monkeypatch.setattr("kbert.training.run.train", lambda config: run)
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(tiny.values(tmp_path / "new", validation=None)))
    assert set(json.loads(invoke("--config", file).stdout)) == {"run", "model", "kept_epoch"}


def test_a_wrong_value_is_named_as_it_was_given(tiny, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(tiny.values(tmp_path / "run", batch_size=0)))
    told = "must be a whole number, at least 1. Received: "
    assert f"Error: {file}: `batch_size` {told}batch_size=0" in invoke("--config", file).stderr
    both = invoke("--config", file, "--batch-size", 1, "--epochs", 0).stderr
    assert f"Error: `--epochs` {told}epochs=0" in both


def test_bad_input_is_told_without_a_traceback(tiny, tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("batchsize: 3\n")
    for arguments, message in (
        (["--config", file], "Received: 'batchsize'. Did you mean `batch_size`?"),
        (["--config", tmp_path / "none.yaml"], "`--config` must be a file. Received: "),
        (["tagging"], "`task` must be one of classification, regression, multi-label"),
        (["translaton"], "stages. Received: task='translaton'. Did you mean `translation`?"),
        (["--train", "a.tsv", "--encoder", "e", "--output", tmp_path / "o"], "'a.tsv'"),
        (["--epochs", "0", "--train", "a"], "`--epochs` must be a whole number, at least 1"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2 and result.stdout == ""
        assert message in result.stderr and "Traceback" not in result.stderr
