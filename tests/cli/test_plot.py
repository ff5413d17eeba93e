import json

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.training.run import train

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def answering(tiny, tmp_path_factory):
    output = tmp_path_factory.mktemp("runs") / "answering"
    return train(tiny.reading(output, "question-answering", tiny.questions, epochs=1))


def plot(run, output, *arguments):
    command = ["plot", str(run), "--output", str(output), *arguments]
    return RUNNER.invoke(app, command)


def test_start_and_end(answering, tmp_path):
    file = tmp_path / "span.png"
    texts = ["--question", "red", "--context", "the red film"]
    done = plot(answering, file, "--picture", "span", *texts)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"picture": str(file)}
    assert file.read_bytes().startswith(b"\x89PNG")


def test_attention_of_any_model(finished_run, tmp_path):
    file = tmp_path / "attention.svg"
    done = plot(finished_run, file, "--text", "the red film", "--layer", "1", "--head", "2")
    assert done.exit_code == 0, done.stderr
    assert "attention, layer 1, head 2" in file.read_text()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--text", "a", "--layer", "2"], "`--layer` must be in 1 to 1. Received: 2"),
        (["--text", "a", "--head", "3"], "`--head` must be in 1 to 2. Received: 3"),
        (["--text", "a", "--picture", "span"], "for a model that answers questions"),
        (["--question", "a"], "`--text`, or `--question` and `--context`, must be given"),
    ],
)
def test_bad_options(arguments, message, finished_run, tmp_path):
    done = plot(finished_run, tmp_path / "a.png", *arguments)
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())
