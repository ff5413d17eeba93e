import json
import shutil

from typer.testing import CliRunner

from kbert.cli.main import app


def test_the_network_of_a_run(finished_run, tmp_path):
    run = shutil.copytree(finished_run, tmp_path / "topics")
    arguments = ["export", str(run), str(tmp_path / "networks"), "--format", "onnx"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    folder = tmp_path / "networks" / "topics"
    assert json.loads(result.stdout) == {"export": str(folder)}
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config["id2label"] == {"0": "down", "1": "up"}
    final = json.loads((run / "metrics.json").read_text())["final"]
    assert f"| test | accuracy | {final['test']['accuracy']:.6g} |" in (
        folder / "README.md"
    ).read_text("utf-8")
    assert CliRunner().invoke(app, arguments).exit_code == 2  # it is there already
