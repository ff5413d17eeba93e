import json
import shutil

from typer.testing import CliRunner

from kbert.cli.main import app


def convert(*arguments):
    return CliRunner().invoke(app, ["convert", *map(str, arguments)])


def test_the_result_is_json(finished_run, tmp_path):
    result = convert(finished_run, tmp_path / "hf", "--format", "huggingface")
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["target"] == str(tmp_path / "hf")
    difference = found["largest_absolute_difference"]
    assert difference["sequence_output"] == 0.0 and difference["heads"]["classifier.weight"] == 0.0


def test_a_checkpoint_alone_is_overwritten(tiny, finished_run, tmp_path, monkeypatch):
    target = tmp_path / "new"
    for format in ("huggingface", "kbert"):
        result = convert(tiny.encoder, target, "--format", format, "--overwrite")
        assert result.exit_code == 0, result.stderr
    shutil.copytree(finished_run, run := tmp_path / "runs" / "topics")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    (tmp_path / "file").touch()
    before = sorted(tmp_path.rglob("*"))
    for source, name in (
        (run, "runs"),
        (run, "runs/topics"),
        (run / "model", "runs/topics/model"),
        (run, "runs/topics/model"),
        (target, "runs/topics"),
        (run, "other"),
        (run, "file"),
    ):
        result = convert(source, tmp_path / name, "--format", "kbert", "--overwrite")
        assert result.exit_code == 2 and "nothing else is overwritten" in result.stderr, name
    monkeypatch.chdir(target)
    result = convert(tiny.encoder, ".", "--format", "kbert", "--overwrite")
    assert result.exit_code == 2 and "nothing else is overwritten" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


def test_bad_input_is_told(tiny, tmp_path):
    (tmp_path / "there").mkdir()
    for arguments, message in (
        ([tiny.encoder, tmp_path / "o", "--format", "onnx"], "`--format` must be one of hugg"),
        ([tiny.encoder, tmp_path / "there", "--format", "kbert"], "must not exist yet"),
        ([tmp_path, tmp_path / "o", "--format", "kbert"], "`SRC` must be a checkpoint"),
        ([tiny.encoder, tmp_path / "o"], "Missing option '--format'"),
    ):
        result = convert(*arguments)
        assert result.exit_code == 2 and message in result.stderr and result.stdout == ""
