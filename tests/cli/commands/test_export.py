import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kbert.cli.commands.export import models_of
from kbert.cli.main import app
from kbert.options.kinds import config_text
from kbert.serving.format.version_folders import read_metadata
from tests.small_translator import LINES, small_translator

TEXTS = "the film was good\nthe plot was dull\n\nthe film was very very very very fine\n"


@pytest.fixture(scope="module")
def exported(finished_run, tmp_path_factory):
    base = tmp_path_factory.mktemp("exports")
    # Without a name, the model is called as the run's folder.
    run = shutil.copytree(finished_run, tmp_path_factory.mktemp("runs") / "topics")
    result = CliRunner().invoke(app, ["export", str(run), str(base)])
    assert result.exit_code == 0, result.stderr
    told = f"Try: kbert predict {base / 'topics'} ...; to serve it: {base / 'README.md'}"
    assert result.stderr.splitlines()[-1] == told and (base / "README.md").is_file()
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


def test_the_card_tells_of_the_training(exported, finished_run):
    card = (exported[0] / "topics" / "1" / "assets.extra" / "README.md").read_text("utf-8")
    final = json.loads((finished_run / "metrics.json").read_text())["final"]
    assert f"| test | accuracy | {final['test']['accuracy']:.6g} |" in card
    report = json.loads((finished_run / "report.json").read_text())["examples"]
    for part, one in report.items():
        assert f"| {part} | {one['count']} | {Path(one['source']).name} |" in card
    assert str(finished_run.parent) not in card
    assert str(Path(report["train"]["source"]).parent) not in card


def test_batches_and_old_versions(exported, finished_run, tmp_path):
    shutil.copytree(exported[0] / "topics", tmp_path / "m")
    arguments = [str(finished_run), str(tmp_path), "--name", "m", "--max-batch-size", "3"]
    result = CliRunner().invoke(app, ["export", *arguments, "--keep", "1"])
    assert result.exit_code == 0, result.stderr
    assert [path.name for path in (tmp_path / "m").iterdir()] == ["2"]
    assert read_metadata(tmp_path / "m" / "2")["batching"]["max_batch_size"] == 3


def test_bad_input_is_told(exported, finished_run):
    base, _ = exported
    for arguments, message in (
        ([finished_run, base, "--name", "topics", "--version", "1"], "must not be there yet"),
        ([finished_run, base, "--name", "a/b"], "`--name` must be made of letters"),
        ([base, base], "`RUN` must be a checkpoint"),
    ):
        result = CliRunner().invoke(app, ["export", *map(str, arguments)])
        assert result.exit_code == 2 and message in result.stderr and result.stdout == ""


def test_a_run_on_several_tasks_stands_for_the_models_of_all(finished_run, tmp_path):
    run = tmp_path / "both"
    (run / "model").mkdir(parents=True)
    tasks = {name: {"train": "a.tsv"} for name in ("second", "first")}
    values = {"task": "multi-task", "tasks": tasks, "encoder": "e", "output": "o"}
    (run / "config.yaml").write_text(config_text(values), "utf-8")
    (run / "metrics.json").write_text("{}", "utf-8")
    found = models_of([finished_run, run])
    assert found == [finished_run, run / "model" / "second", run / "model" / "first"]


def test_a_translator_with_a_shortlist(finished_run, tmp_path):
    model = small_translator(beam_size=1)
    folder = model.save_pretrained(tmp_path / "de-en")
    for name, lines in (("source", LINES[:3]), ("target", LINES[3:6])):
        (tmp_path / name).write_text("\n".join(lines), "utf-8")
    given = ["--shortlist", str(tmp_path / "source"), str(tmp_path / "target")]
    base = tmp_path / "exports"
    result = CliRunner().invoke(app, ["export", str(folder), str(base), *given])
    assert result.exit_code == 0, result.stderr
    found = CliRunner().invoke(app, ["predict", str(base / "de-en")], input="\n".join(LINES[:3]))
    model.learn_shortlist(LINES[:3], LINES[3:6])
    short = model.translations(LINES[:3])
    assert [json.loads(x)["translation"] for x in found.stdout.splitlines()] == short
    assert read_metadata(base / "de-en" / "1")["shortlist"] is True
    card = base / "de-en" / "1" / "assets.extra" / "README.md"
    assert "only pieces that its shortlist allows" in card.read_text("utf-8")

    (tmp_path / "less").write_text("eine Zeile", "utf-8")
    for run, files, message in (
        (finished_run, given[1:], f"for one alone. Received: {finished_run}"),
        (folder, [given[1], str(tmp_path / "less")], "must have the same number of lines"),
        (folder, [given[1], "nowhere"], "`--shortlist` must be a file. Received: 'nowhere'"),
    ):
        result = CliRunner().invoke(app, ["export", str(run), str(base), "--shortlist", *files])
        assert result.exit_code == 2 and message in result.stderr


@pytest.mark.slow
def test_a_run_on_several_tasks_has_a_signature_for_each(tiny, tmp_path):
    text = {"train": tiny.texts["train"], "max_sequence_length": 16}
    pairs = {"task": "regression", "train": tiny.pairs, "max_sequence_length": 16}
    values = {"task": "multi-task", "tasks": {"mood": text, "score": pairs}, "epochs": 1}
    values |= {"encoder": str(tiny.encoder), "output": str(tmp_path / "both")}
    (tmp_path / "run.yaml").write_text(config_text(values), "utf-8")
    for command in (
        ["train", "multi-task", "--config", str(tmp_path / "run.yaml")],
        ["export", str(tmp_path / "both"), str(tmp_path / "exports")],
    ):
        result = CliRunner().invoke(app, command)
        assert result.exit_code == 0, result.stderr
    assert {"mood", "score", "serving_default"} == set(json.loads(result.stdout)["signatures"])
    export = str(tmp_path / "exports" / "both")
    answers = [
        CliRunner().invoke(app, ["predict", *model, "--text", "the film was good"]).stdout
        for model in ([export, "--task", "mood"], [str(tmp_path / "both" / "model" / "mood")])
    ]
    one, other = map(json.loads, answers)
    assert one["scores"] == pytest.approx(other["scores"], abs=1e-5)
