from typer.testing import CliRunner

from kbert.cli.commands.train import asks_for_translation
from kbert.cli.main import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_the_first_word_or_the_file_says_the_task(tmp_path):
    file = tmp_path / "run.yaml"
    file.write_text("task: translation\nepochs: 3\n")
    assert asks_for_translation(["translation", "--epochs", "3"])
    assert asks_for_translation(["--epochs", "3", "--config", str(file)])
    assert asks_for_translation([f"--config={file}"])
    for arguments in (
        [],
        ["ner", "--config", str(file)],
        ["--output", "translation"],
        ["--config"],
        ["--config", str(tmp_path / "none.yaml")],
        ["--config", str(tmp_path)],
    ):
        assert not asks_for_translation(arguments), arguments
    file.write_text("task: ner\n")
    assert not asks_for_translation(["--config", str(file)])


def test_each_task_has_its_own_options():
    ours, theirs = invoke("translation", "--help").stdout, invoke("--help").stdout
    assert "--beam-size" in ours and "--encoder " not in ours
    assert "--encoder " in theirs and "--beam-size" not in theirs
    assert "kbert train translation --help" in theirs
    result = invoke("translation", "--encoder", "e")
    assert result.exit_code == 2 and "No such option: --encoder" in result.stderr
    result = invoke("--epochs", 3, "translation")
    assert result.exit_code == 2 and "`translation` must be the first word" in result.stderr
