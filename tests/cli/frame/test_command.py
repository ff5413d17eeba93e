import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from kbert.cli.frame.command import asked_task
from kbert.cli.main import app


@pytest.mark.parametrize(
    "line, expected",
    [
        ("tr", ["train"]),
        ("train multi", ["multi-label", "multiple-choice", "multi-task"]),
        ("train classification --learning-", ["--learning-rate"]),
        ("predict minilm-s", ["minilm-squad", "minilm-sentiment"]),
        ("predict run", []),  # then the shell completes paths
        ("train ner --tag-scheme bi", ["bio"]),
    ],
)
def test_a_shell_completes(line, expected):
    place = str(len(line.split()))
    asked = {"_KBERT_COMPLETE": "complete_bash", "COMP_WORDS": f"kbert {line}", "COMP_CWORD": place}
    code = "import sys; sys.argv = ['kbert']; from kbert.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **asked}
    )
    assert (done.returncode, done.stdout.split()) == (0, expected)


def test_an_unknown_option_leads_to_those_that_may_be_meant():
    for arguments, options in (
        (["train", "--lr", "3"], "--learning-rate, --lora-rank"),
        (["train", "translation", "--epoch", "3"], "--epochs"),
        (["predict", "run", "--txt", "a"], "--text, --text-a, --text-b"),
    ):
        told = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"}).stderr
        assert f"No such option: {arguments[-2]} (Possible options: {options})" in told


def test_the_first_word_or_the_file_says_the_task(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("task: translation\nepochs: 3\n")
    assert asked_task(["translation", "--epochs", "3"]) == "translation"
    assert asked_task(["captioning", "--config", str(file)]) == "captioning"
    assert asked_task(["ner", "--config", str(file)]) == "ner"
    assert asked_task(["--epochs", "3", "--config", str(file)]) == "translation"
    assert asked_task([f"--config={file}"]) == "translation"
    for arguments in (
        [],
        ["--output", "translation"],
        ["--config"],
        ["--config", str(tmp_path / "none.yaml")],
        ["--config", str(tmp_path)],
    ):
        assert asked_task(arguments) is None, arguments
    for task in ("ner", "captioning"):
        file.write_text(f"task: {task}\n")
        assert asked_task(["--config", str(file)]) == task
    for content in ("epochs: 3\n", "task: 3\n", "task: [captioning]\n", "a: b: c"):
        file.write_text(content)
        assert asked_task(["--config", str(file)]) is None, content


def test_the_help_has_room_for_names_at_80_columns():
    shown = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "80"}).stdout
    words = shown.split()
    assert "--gradient-checkpointing" in words and "--no-gradient-checkpointing" not in words
    assert "--resume" in words and "--no-resume" in words  # on without it
    assert not [line for line in shown.splitlines() if re.search(r"--\S*…", line)]
    # It is an option all the same.
    result = CliRunner().invoke(app, ["train", "--no-gradient-checkpointing"])
    assert "No such option" not in result.stderr
