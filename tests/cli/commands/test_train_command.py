from typer.testing import CliRunner

from kbert.cli.main import app


def invoke(*arguments):
    return CliRunner().invoke(app, ["train", *map(str, arguments)])


def test_each_task_has_its_own_options():
    ours, theirs = invoke("translation", "--help").stdout, invoke("--help").stdout
    assert "--beam-size" in ours and "--encoder " not in ours
    assert "--encoder " in theirs and "--beam-size" not in theirs
    assert "kbert train translation --help" in theirs
    result = invoke("translation", "--encoder", "e")
    assert result.exit_code == 2 and "No such option: --encoder" in result.stderr
    result = invoke("--epochs", 3, "translation")
    assert result.exit_code == 2 and "`translation` must be the first word" in result.stderr


def test_the_help_of_a_task_leaves_out_what_others_alone_have():
    every = ("--epochs", "--class-weights", "--pooling", "--stride", "--tag-scheme", "--features")
    shown = {
        "classification": ("--epochs", "--class-weights", "--features"),
        "ner": ("--epochs", "--stride", "--tag-scheme", "--features"),
        "embedding": ("--epochs", "--pooling"),
    }
    for task, wanted in shown.items():
        for arguments in ((task, "--help"), (task, "-h")):
            words = invoke(*arguments).stdout.split()
            assert [option for option in every if option in words] == list(wanted), task
    words = invoke("--help").stdout.split()
    assert [option for option in every if option in words] == list(every)
    # They are options all the same, with an error that says why they do not fit.
    result = invoke("ner", "--train", "a", "--encoder", "e", "--output", "o", "--pooling", "cls")
    assert result.exit_code == 2 and "`--pooling` must be left out with task='ner'" in result.stderr


def test_captioning_has_its_own_options_too(tmp_path):
    shown = invoke("captioning", "--help").stdout
    for option in ("--images", "--network-layer", "--attention-penalty", "--split"):
        assert option in shown
    for option in ("--encoder ", "--glue", "--bert"):
        assert option not in shown
    assert "--images" not in invoke("--help").stdout
    result = invoke("captioning", "--glue", "sst2")
    assert result.exit_code == 2 and "No such option: --glue" in result.stderr
    result = invoke("--epochs", 3, "captioning")
    assert result.exit_code == 2 and "`captioning` must be the first word" in result.stderr
    result = invoke("captioning", "--train", "a.csv")
    assert result.exit_code == 2 and "`--images` (a folder) and `--output` (a fo" in result.stderr
    file = tmp_path / "run.yaml"
    file.write_text("task: captioning\nnbest: 9\ntrain: a.csv\nimages: b\noutput: c\n")
    result = invoke("--config", file)
    assert result.exit_code == 2 and "`nbest` must be at most beam_size=5" in result.stderr
    result = invoke("caption", "--config", file)
    assert result.exit_code == 2 and "Did you mean" in result.stderr
    assert "captioning" in result.stderr
