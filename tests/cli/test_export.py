import json

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app

TEXTS = "the film was good\nthe plot was dull\n\nthe film was very very very very fine\n"


@pytest.fixture(scope="module")
def exported(finished_run, tmp_path_factory):
    base = tmp_path_factory.mktemp("exports")
    arguments = ["export", str(finished_run), str(base), "--name", "topics"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    return base, json.loads(result.stdout)


def test_an_export_lies_where_it_says(exported):
    base, found = exported
    assert found["export"] == str(base / "topics" / "1")
    assert found["signatures"]["serving_default"]["inputs"] == {
        "text": {"dtype": "string", "shape": [None]}
    }


def test_an_export_answers_as_its_run(exported, finished_run):
    def answers(path):
        result = CliRunner().invoke(app, ["predict", str(path)], input=TEXTS)
        assert result.exit_code == 0, result.stderr
        return [json.loads(line) for line in result.stdout.splitlines()]

    of_run, of_export = answers(finished_run), answers(exported[0] / "topics")
    assert len(of_run) == len(of_export) == 4
    for one, other in zip(of_run, of_export):
        assert set(one) == set(other)
        assert (one["label"], one["truncated"]) == (other["label"], other["truncated"])
        assert one["scores"] == pytest.approx(other["scores"], abs=1e-5)


def test_info_knows_an_export(exported):
    result = CliRunner().invoke(app, ["info", str(exported[0] / "topics")])
    found = json.loads(result.stdout)
    assert (found["kind"], found["class"], found["servable"]) == ("export", "Classifier", True)
    assert found["labels"] == ["down", "up"]


def test_bad_input_is_told(exported, finished_run):
    base, _ = exported
    for arguments, message in (
        ([finished_run, base, "--name", "topics", "--version", "1"], "must not be there yet"),
        ([finished_run, base, "--name", "a/b"], "`name` must be made of letters"),
        ([base, base], "`path` must be a checkpoint"),
    ):
        result = CliRunner().invoke(app, ["export", *map(str, arguments)])
        assert result.exit_code == 2 and message in result.stderr and result.stdout == ""
