import subprocess
import sys
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from kbert.cli.frame.errors import reported
from kbert.training.runs.stopped_runs import TrainingStopped


def run(verb, **env):
    app = typer.Typer()
    app.command()(reported(verb))
    return CliRunner().invoke(app, [], env={"KBERT_DEBUG": "", **env})


def raising(error):
    def verb() -> None:
        raise error

    return verb


@pytest.mark.parametrize(
    "error, code, message",
    [
        (ValueError("`a` must be 1. Received: a=2"), 2, "Error: `a` must be 1. Received: a=2\n"),
        (FileNotFoundError(2, "Gone", "a.tsv"), 2, "Error: [Errno 2] Gone: 'a.tsv'\n"),
        (FileExistsError("there"), 2, "Error: there\n"),
        (RuntimeError("broke"), 1, "Error: RuntimeError: broke  (kbert --debug shows where"),
        (KeyError("x"), 1, "Error: KeyError: 'x'"),
        (ValueError(), 2, "Error: ValueError: "),
        (KeyboardInterrupt(), 130, "Stopped.\n"),
        (TrainingStopped("stopped by SIGTERM"), 75, "stopped by SIGTERM\n"),
    ],
)
def test_a_message_and_a_code_without_a_traceback(error, code, message):
    result = run(raising(error))
    assert result.exit_code == code
    assert result.stderr.startswith(message)
    assert result.stdout == "" and "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "module, raised, told",
    [
        ("kbert.own", "ImportError('It needs a.')", "Error: It needs a.\n"),
        ("kbert.own", "OSError('The port 1 is taken.')", "Error: The port 1 is taken.\n"),
        ("kbert.own", "OSError(28, 'No space')", "Error: OSError: [Errno 28] No space  (kbert"),
        ("kbert.own", "RuntimeError('broke')", "Error: RuntimeError: broke  (kbert --debug"),
        ("other", "ImportError('It needs a.')", "Error: ImportError: It needs a.  (kbert --debug"),
    ],
)
def test_a_sentence_of_kberts_own_has_no_class(module, raised, told):
    names = {"__name__": module}
    exec(f"def verb() -> None:\n    raise {raised}\n", names)
    result = run(names["verb"])
    assert result.exit_code == 1 and result.stderr.startswith(told)


def test_a_module_that_is_not_there_is_named_with_its_error():
    names = {"__name__": "kbert.own"}
    exec("def verb() -> None:\n    import no_such_module_here\n", names)
    told = "Error: ModuleNotFoundError: No module named 'no_such_module_here'"
    assert run(names["verb"]).stderr.startswith(told)


def test_an_argument_is_named_as_the_option_that_it_is():
    def verb(
        rate: Annotated[int, typer.Option()] = 0,
        many: Annotated[int, typer.Option("--how-many/--none")] = 0,
    ) -> None:
        raise ValueError("`rate`, `many` and `x` must fit; have `rate`. Received: `rate` of 0")

    told = "Error: `--rate`, `--how-many` and `x` must fit; have `rate`. Received: `rate` of 0\n"
    assert run(verb).stderr == told


def test_debug_shows_the_traceback():
    result = run(raising(ValueError("bad")), KBERT_DEBUG="1")
    assert result.exit_code == 2
    assert "Traceback (most recent call last)" in result.stderr
    assert result.stderr.endswith("Error: bad\n")


def test_an_exit_stays_an_exit():
    assert run(raising(typer.Exit(7))).exit_code == 7


def test_a_closed_pipe_is_no_error():
    code = (
        "import sys, typer\n"
        "from kbert.cli.frame.errors import reported\n"
        "@reported\n"
        "def verb() -> None:\n"
        "    for number in range(100000):\n"
        "        sys.stdout.write(f'{number}\\n')\n"
        "    sys.stdout.flush()\n"
        "typer.run(verb)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "0\n"
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141
