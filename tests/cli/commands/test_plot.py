import json
import re

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.models.encoder_model import EncoderModel
from tests.small_pipelines import small_question_answerer
from tests.small_translator import small_translator

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def answering(tmp_path_factory):
    return small_question_answerer().save_pretrained(tmp_path_factory.mktemp("models") / "reader")


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
    "arguments, titles, absent",
    [
        ([], ["accuracy", "loss", "epoch"], "macro f1"),
        (["--metrics", "macro_f1, loss"], ["macro f1", "loss", "epoch"], "accuracy"),
    ],
)
def test_curves_of_a_training(arguments, titles, absent, finished_run, tmp_path):
    file = tmp_path / "curve.svg"
    done = plot(finished_run, file, "--picture", "curve", *arguments)
    assert done.exit_code == 0, done.stderr
    written = re.findall("<!-- (.*?) -->", file.read_text())
    assert set(titles) <= set(written) and absent not in written


def test_what_has_no_curves(finished_run, tmp_path):
    done = plot(finished_run, tmp_path / "a.png", "--picture", "curve", "--metrics", "acc")
    assert done.exit_code == 2 and "`metrics` must be of " in done.stderr
    metrics = finished_run / "metrics.json"
    run = tmp_path / "grid"
    run.mkdir()
    (run / "config.yaml").write_bytes((finished_run / "config.yaml").read_bytes())
    (run / "metrics.json").write_text(json.dumps({"points": json.loads(metrics.read_text())}))
    done = plot(run, tmp_path / "a.png", "--picture", "curve")
    assert done.exit_code == 2
    assert "`--picture curve` must be given for the run of one training. Rec" in done.stderr


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    model = small_translator(decoder_layers=2)
    return model.save_pretrained(tmp_path_factory.mktemp("models") / "translator")


@pytest.mark.parametrize(
    "arguments, title, labels",
    [
        ([], "alignment, layer 2, mean of the heads", ["ball"]),
        (["--layer", "1", "--head", "2"], "alignment, layer 1, head 2", ["ball"]),
        (["--layer", "0"], "alignment, mean of the layers, mean of the heads", ["ball"]),
        (["--pieces"], "alignment, layer 2, mean of the heads", ["\u2581b", "all"]),
        (["--picture", "attention"], "attention, layer 1, mean of the heads", ["\u2581b", "all"]),
    ],
)
def test_a_translator(arguments, title, labels, translator, tmp_path):
    file = tmp_path / "a.svg"
    done = plot(translator, file, "--text", "a ball", *arguments)
    assert done.exit_code == 0, done.stderr
    drawn = re.findall("<!-- (.*?) -->", file.read_text(encoding="utf-8"))
    assert title in drawn
    assert set(labels) <= set(drawn), drawn


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--text", "a", "--layer", "3"], "`--layer` must be in 1 to 2. Received: 3"),
        (["--text", "a", "--head", "3"], "`--head` must be in 1 to 2. Received: 3"),
        (["--text", " "], "`--text` must have something to translate. Received: an empty text"),
        (["--question", "a", "--context", "a"], "must be given for a translator, with --text. Rec"),
    ],
)
def test_bad_options_of_a_translator(arguments, message, translator, tmp_path):
    done = plot(translator, tmp_path / "a.png", *arguments)
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--text", "a", "--layer", "2"], "`--layer` must be in 1 to 1. Received: 2"),
        (["--text", "a", "--head", "3"], "`--head` must be in 1 to 2. Received: 3"),
        (["--text", "a", "--layer", "0"], "`--layer` must be in 1 to 1. Received: 0"),
        (["--text", "a", "--picture", "span"], "for a model that answers questions"),
        (["--text", "a", "--picture", "alignment"], "must be given for a translator, with --text."),
        (["--question", "a"], "`--question` and `--context`, or `--image` must be given"),
    ],
)
def test_bad_options(arguments, message, finished_run, tmp_path):
    done = plot(finished_run, tmp_path / "a.png", *arguments)
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())


def test_a_model_without_attention(finished_run, tmp_path, monkeypatch):
    monkeypatch.setattr(EncoderModel, "attention_scores", lambda self, inputs: [])
    done = plot(finished_run, tmp_path / "a.svg", "--text", "red")
    message = "`--picture attention` must be given for a model with attention."
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())
