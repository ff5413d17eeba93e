import json
import shutil

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.data.classification.glue_tasks import glue_task, submission_name
from kbert.training.runs.run_directory import load_run


def invoke(*arguments):
    return CliRunner().invoke(app, ["evaluate", *map(str, arguments)])


def test_a_file_gives_the_numbers_of_the_run(finished_run, tiny):
    result = invoke(finished_run, tiny.texts["test"])
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["examples"] == 8 and found["models"] == [str(finished_run)]
    final = load_run(finished_run).metrics["final"]["test"]
    assert found["metrics"]["accuracy"] == final["accuracy"]
    assert found["metrics"]["cross_entropy"] == pytest.approx(final["cross_entropy"], abs=1e-5)
    assert "all: accuracy" in result.stderr


def test_the_average_of_a_run_and_itself_is_the_run(finished_run, tiny):
    result = invoke(finished_run, finished_run, tiny.texts["test"], "--average")
    found = json.loads(result.stdout)
    final = load_run(finished_run).metrics["final"]["test"]
    assert found["metrics"]["cross_entropy"] == pytest.approx(final["cross_entropy"], abs=1e-5)
    assert len(found["models"]) == 2


def test_glue_and_its_submission(tiny, tmp_path):
    from kbert.tasks.classification.model import Classifier

    labels = ["negative", "positive"]
    model = Classifier.from_pretrained(tiny.encoder, labels=labels, max_sequence_length=16)
    saved = model.save_pretrained(tmp_path / "model")
    folder = tmp_path / "SST-2"
    folder.mkdir()
    (folder / "dev.tsv").write_text("sentence\tlabel\ngood film\t1\nbad\t0\n")
    (folder / "test.tsv").write_text("index\tsentence\n0\tgood\n1\tbad\n2\tdull\n")
    result = invoke(saved, "--glue", "SST-2", "--data", tmp_path)
    assert result.exit_code == 0, result.stderr
    assert list(json.loads(result.stdout)["metrics"])[0] == "accuracy"
    upload = tmp_path / "upload"
    arguments = ["--glue", "sst2", "--data", tmp_path, "--split", "test", "--submission", upload]
    with pytest.warns(UserWarning, match="the official test set has 1821 rows"):
        result = invoke(saved, *arguments)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["submission"] == str(upload / "SST-2.tsv")
    lines = (upload / "SST-2.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction" and len(lines) == 4
    assert all(line.split("\t")[1] in "01" for line in lines[1:])
    result = invoke(saved, *arguments[:-2])
    assert result.exit_code == 2 and "must have labels to be measured" in result.stderr


def test_bad_input_is_told(finished_run, tiny, tmp_path):
    wrong = tmp_path / "wrong.tsv"
    wrong.write_text("text\tlabel\ngood\tsideways\n")
    together = shutil.copytree(finished_run, tmp_path / "together")
    (together / "config.yaml").write_text(
        "task: multi-task\nencoder: e\noutput: o\ntasks: {a: {train: t.tsv}, b: {train: t.tsv}}\n"
    )
    for arguments, message in (
        ([finished_run], "must have a run and then a file"),
        ([finished_run, "--glue", "sst2"], "`--data` must be the folder of GLUE"),
        ([finished_run, finished_run, wrong], "`--average` must be given for several runs"),
        ([finished_run, wrong], "the label must be one of `down`, `up`. Received: 'sideways'"),
        ([finished_run, tiny.pairs, "--label", "score"], "must be single texts, as the model"),
        ([finished_run, tmp_path / "none.tsv"], "none.tsv"),
        ([together, tiny.texts["test"]], "`RUN` must be of one task: "),
        ([finished_run, tiny.texts["test"], "--submission", tmp_path], "together with `--glue`"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2, arguments
        assert message in result.stderr and result.stdout == ""


def test_columns_that_a_task_does_not_read(monkeypatch, finished_run, tiny):
    for task, option in (
        ("question-answering", "--text-a"),
        ("multiple-choice", "--label"),
        ("ner", "--text-b"),
    ):
        monkeypatch.setattr("kbert.cli.actions.model_kinds.task_of", lambda run, task=task: task)
        result = invoke(finished_run, tiny.texts["test"], option, "x")
        assert result.exit_code == 2
        told = f"`{option}` must be left out for {task}, whose columns have fixed names. Received"
        assert told in result.stderr


def test_what_would_be_written_is_looked_at_first(finished_run, tiny, tmp_path):
    of_glue = ["--glue", "mnli", "--data", tmp_path]
    for arguments, message in (
        ([finished_run, tiny.texts["test"], "--predictions", tmp_path], "must be a file. Receiv"),
        ([finished_run, *of_glue, "--submission", "up"], "`--split` must be one of test, test_ma"),
        ([finished_run, tiny.texts["test"], "--split", "test"], "together with `--glue`"),
        ([finished_run, *of_glue, "--label", "x"], "`--label` must be left out with --glue"),
    ):
        result = invoke(*arguments)
        assert result.exit_code == 2 and message in result.stderr, result.stderr
    assert submission_name(glue_task("mnli"), "test-mismatched") == "MNLI-mm.tsv"
