import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.serving.export.export import export
from tests.serving.tiny_models import Meter


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(Meter(), tmp_path_factory.mktemp("exports"), max_batch_size=2)


def check(*arguments: object):
    return CliRunner().invoke(app, ["check", *map(str, arguments)])


def test_a_good_export(exported: Path):
    result = check(exported.parent)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["ok"] and found["export"] == str(exported) and found["server"] == "2.20"
    assert found["least_server"] == {"by_ops": "2.16", "promised": "2.20"}
    assert {one["status"] for one in found["checks"]} <= {"passed", "skipped"}
    assert "passed   golden_answers" in result.stderr
    assert result.stderr.endswith(f"{exported.parent}: passed\n")


def test_a_bad_one(exported: Path):
    result = check(exported, "--no-run", "--server", "2.16")
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert not found["ok"] and found["server"] == "2.16"
    (failed,) = [one for one in found["checks"] if one["status"] == "failed"]
    assert failed["name"] == "ops"
    assert result.stderr.endswith(f"{exported}: FAILED\n")
    assert "failed   ops" in result.stderr and "- TensorFlow 2.20.0 wrote" in result.stderr


def test_what_cannot_be_checked(exported: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert check(exported).exit_code == 0
    result = check(exported, "--strict")
    assert result.exit_code == 1 and not json.loads(result.stdout)["ok"]
    assert "skipped  session_run: A C compiler is needed" in result.stderr


def test_bad_input_is_told(exported: Path):
    for arguments, message in (
        ([exported.parent.parent / "none"], "`EXPORT` must be an export"),
        ([exported, "--server", "1.15"], "`--server` must be a version of TF Serving"),
    ):
        result = check(*arguments)
        assert result.exit_code == 2 and message in result.stderr and result.stdout == ""
