import logging
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

import kbert
from kbert.cli.main import app

VERBS = (
    *("train", "pretrain", "evaluate", "predict", "export", "serve", "check", "convert", "info"),
    *("push", "doctor", "demo"),
)


def test_the_version():
    result = CliRunner().invoke(app, ["--version"])
    first, *others = result.stdout.splitlines()
    assert (result.exit_code, first) == (0, f"kbert {kbert.__version__}")
    names = [line.rpartition(" ")[0] for line in others]
    assert names[:5] == ["Python", "tensorflow", "tensorflow-text", "keras", "Keras backend"]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_the_module_is_the_program_and_loads_no_tensorflow(arguments):
    code = (
        "import runpy, sys\n"
        "try:\n"
        f"    sys.argv[1:] = {arguments}\n"
        "    runpy.run_module('kbert', run_name='__main__')\n"
        "finally:\n"
        "    print({'tensorflow', 'keras', 'numpy'} & set(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "set()\n" and "kbert" in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_teaches_by_an_example(verb):
    result = CliRunner().invoke(app, [verb, "--help"])
    assert result.exit_code == 0
    assert f"kbert {verb} " in result.stdout and "Example" in result.stdout


def test_a_wrong_verb_or_option_has_code_2():
    for arguments in (["trian"], ["train", "--epoch-count", "3"], ["train", "--epochs", "three"]):
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 2 and result.stdout == ""
    assert "Did you mean 'train'" in CliRunner().invoke(app, ["trian"]).stderr


def test_help_is_quick_and_loads_no_tensorflow():
    code = (
        "import sys\n"
        "sys.argv = ['kbert', '--help']\n"
        "from kbert.cli.main import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        "    print({'tensorflow', 'keras', 'numpy'} & set(sys.modules), file=sys.stderr)\n"
    )
    begin = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds = time.monotonic() - begin
    assert done.stderr == "set()\n"
    # 0.4 s on an idle machine of two cores; tests may have to share it.
    assert seconds < 1.5 * 4
    assert all(verb in done.stdout for verb in VERBS)


def test_debug_is_passed_on(monkeypatch):
    monkeypatch.setenv("KBERT_DEBUG", "")
    result = CliRunner().invoke(app, ["--debug", "train"])
    assert result.exit_code == 2
    assert "Traceback" in result.stderr
    assert "Error: `--train` (a file, " in result.stderr


def test_graphs_of_several_runs_are_no_warning(caplog):
    CliRunner().invoke(app, ["train"])  # fails for want of options, but sets the program up
    logger = logging.getLogger("tensorflow")
    logger.warning("5 out of the last 6 calls to f triggered tf.function retracing.")
    logger.warning("something else")
    assert [record.message for record in caplog.records if record.name == "tensorflow"] == [
        "something else"
    ]


def test_a_warning_is_a_line_without_its_source():
    code = (
        "import warnings\n"
        "from kbert.cli import main\n"
        "main.app = lambda: warnings.warn('a.csv: 1 of 2 rows have an empty text')\n"
        "main.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "UserWarning: a.csv: 1 of 2 rows have an empty text\n"
