from typer.testing import CliRunner

from kbert.cli.main import app


def test_an_encoder_that_is_not_there_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr("kbert.cli.actions.demo.ENCODER", "all-MiniLM-L6-v3")
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path / "demo")])
    assert result.exit_code == 2 and "Did you mean `all-MiniLM-L6-v2`" in result.stderr
    assert "1. Look at the examples" in result.stdout


def test_the_output_is_no_run(tmp_path):
    (tmp_path / "metrics.json").touch()
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 2 and "which is a run" in result.stderr


def test_the_output_must_be_free(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("dear")
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 2 and "nothing else is overwritten" in result.stderr
    assert (tmp_path / "run" / "letter.txt").is_file()


def test_a_folder_of_the_same_name_stays(tmp_path):
    (tmp_path / "shapes").mkdir()
    (tmp_path / "shapes" / "mine.svg").touch()
    result = CliRunner().invoke(app, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 2 and "whose folder shapes would be replaced" in result.stderr
    assert (tmp_path / "shapes" / "mine.svg").is_file()
