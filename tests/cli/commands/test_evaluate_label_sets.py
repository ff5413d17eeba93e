"""A run with several labels a text, from files to answers, on the command line."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from kbert.checkpoints.read_checkpoint import read_checkpoint
from kbert.cli.actions.evaluation import evaluate_runs
from kbert.cli.actions.model_kinds import task_of
from kbert.cli.main import app
from kbert.tasks.load import load
from kbert.training.runs.run_directory import load_run
from tests.pinned import check_run

ROWS = [("good film", "up;warm"), ("bad", "down"), ("the red", ""), ("good sun", "warm;up")] * 4


def invoke(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


def answered(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout), result.stderr


def write(path, rows, columns=("text", "mood")):
    lines = ["\t".join(row) + "\n" for row in (columns, *rows)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write(tmp_path_factory.mktemp("labels") / "rows.tsv", ROWS)


@pytest.fixture(scope="module")
def run(tiny, file):
    output = file.parent / "run"
    options = ["--label", "mood", "--label-separator", ";", "--tune-thresholds"]
    options += ["--encoder", tiny.encoder, "--epochs", 2, "--batch-size", 8, "--output", output]
    options += ["--max-sequence-length", 16, "--learning-rate", 0.01, "--class-weights", "balanced"]
    parts = [one for part in ("train", "validation", "test") for one in (f"--{part}", file)]
    found, _ = answered("train", "multi-label", *parts, *options)
    assert found["run"] == str(output)
    return output


def test_the_run(run):
    report = json.loads((run / "report.json").read_text())
    assert report["examples"]["train"]["labels"] == {"down": 4, "up": 8, "warm": 8}
    assert report["class_weights"] == {"down": 3.0, "up": 1.0, "warm": 1.0}
    final = load_run(run).metrics["final"]
    # The test examples are those of validation, and the thresholds are saved with the model.
    assert final["test"] == final["validation"]
    model = load(run / "model")
    bounds = {name: row["threshold"] for name, row in final["test"]["per_class"].items()}
    assert model.thresholds == bounds and model.threshold != 0.5
    check_run("fine-tuning, multi-label", run, ("metrics.json",))


def test_a_file_gives_the_numbers_of_the_run(run, file):
    final = load_run(run).metrics["final"]["test"]
    for arguments in ([run, file], [run, run, file, "--average"]):
        found, shown = answered("evaluate", *arguments)
        assert found["examples"] == len(ROWS)
        assert found["metrics"]["micro_f1"] == final["micro_f1"]
        assert found["metrics"]["exact_match"] == final["exact_match"]
        for word in ("threshold", "exactly right", "mean of labels", "warm"):
            assert word in shown


def test_other_columns_of_another_folder(run, tmp_path):
    content = [(t, *(str(int(x in m)) for x in ("up", "down", "warm"))) for t, m in ROWS]
    columns = write(tmp_path / "columns.tsv", content, ("text", "up", "down", "warm"))
    model = load(run / "model")
    model.threshold = {"up": 0.4}
    folder = model.save_pretrained(tmp_path / "hf", format="huggingface")
    assert task_of(folder) == "multi-label" and not read_checkpoint(folder).pipeline
    found, _ = answered("evaluate", folder, columns, "--label", "up,down,warm")
    bounds = {name: row["threshold"] for name, row in found["metrics"]["per_class"].items()}
    assert bounds == {"up": 0.4, "down": 0.5, "warm": 0.5}
    other = write(tmp_path / "other.tsv", [(t, m.replace(";", "/")) for t, m in ROWS])
    again, _ = answered("evaluate", folder, other, "--label", "mood", "--label-separator", "/")
    assert again["metrics"] == found["metrics"]


def test_thresholds_tuned_on_a_file(run, file, tmp_path):
    plain = load(run / "model")
    plain.threshold = 0.5
    folder = plain.save_pretrained(tmp_path / "plain")
    options = ("--label", "mood", "--label-separator", ";", "--tune-thresholds", tmp_path / "tuned")
    found, shown = answered("evaluate", folder, file, *options)
    tuned = load(tmp_path / "tuned")
    assert found["thresholds"] == tuned.thresholds == load(run / "model").thresholds
    assert found["model"] == str(tmp_path / "tuned") and "exactly right" in shown
    given = {"text_a": None, "text_b": None, "label": "mood", "label_separator": ";"}
    measured = evaluate_runs([tmp_path / "tuned"], file, (None, None, "dev"), given)
    assert measured["metrics"] == found["metrics"]
    result = invoke("evaluate", folder, file, *options)
    assert result.exit_code != 0 and "must be a new folder" in result.stderr


def test_conversions_keep_the_task(run, tmp_path):
    model = load(run / "model")
    answered("convert", run, tmp_path / "hf", "--format", "huggingface")
    answered("convert", tmp_path / "hf", tmp_path / "kbert", "--format", "kbert")
    for folder in (tmp_path / "hf", tmp_path / "kbert"):
        again = load(folder)
        assert type(again) is type(model) and again.thresholds == model.thresholds


def test_answers(run, tmp_path):
    found, _ = answered("predict", run, "--text", "good film")
    assert sorted(found) == ["labels", "probabilities", "truncated"]
    model = load(run / "model")
    assert found["labels"] == model.answers(["good film"])[0]["labels"]
    source, output = write(tmp_path / "rows.tsv", ROWS[:4]), tmp_path / "answers.csv"
    answered("predict", run, "--input", source, "--output", output)
    header, first = output.read_text("utf-8").splitlines()[:2]
    assert header == "text,mood,labels,probabilities,truncated"
    assert first.startswith("good film,up;warm,")


def test_what_does_not_fit_is_told(run, finished_run, tiny, file, tmp_path):
    wrong = write(tmp_path / "wrong.tsv", [("good", "up;sideways")])
    for arguments, message in (
        ([run, wrong], "the label must be one of `down`, `up`, `warm`. Received: 'sideways'"),
        ([run, file, "--label", "moods"], "Did you mean `mood`?"),
        ([finished_run, tiny.texts["test"], "--label-separator", ";"], "several labels a text"),
        ([finished_run, tiny.texts["test"], "--tune-thresholds", "x"], "`--tune-thresholds` must"),
        ([run, run, file, "--average", "--tune-thresholds", tmp_path / "x"], "must have one run"),
    ):
        result = invoke("evaluate", *arguments)
        assert result.exit_code == 2 and message in result.stderr, result.stderr


@pytest.mark.slow
def test_an_export(run, file, tmp_path, graphs):
    answered("export", run, tmp_path / "exports", "--name", "moods", "--measure", file)
    export = tmp_path / "exports" / "moods"
    _, shown = answered("check", export)
    assert shown.rstrip().endswith(": passed")
    card = (export / "1" / "assets.extra" / "README.md").read_text("utf-8")
    assert "it says which of its labels, if any, a text, or a pair of texts, has" in card
    assert "micro_f1" in card and "`warm` from 0." in card
    about = json.loads((export / "1" / "assets.extra" / "kbert.json").read_text("utf-8"))
    assert about["thresholds"] == load(run / "model").thresholds
    model = load(run / "model")
    (expected,) = model.answers(["good film"])
    found, _ = answered("predict", export, "--text", "good film")
    assert found["labels"] == expected["labels"]
    np.testing.assert_allclose(
        list(found["probabilities"].values()), list(expected["probabilities"].values()), atol=1e-5
    )
    output = tmp_path / "answers.jsonl"
    answered("predict", export, "--input", file, "--output", output)
    rows = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert [row["labels"] for row in rows] == [
        one["labels"] for one in model.answers([text for text, _ in ROWS])
    ]
