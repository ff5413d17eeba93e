import json
import re

import pytest
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.models.encoder_decoders.bahdanau import Bahdanau
from kbert.models.encoder_model import EncoderModel
from kbert.tasks.translation.model import Translator
from tests.small_pipelines import (
    small_classifier,
    small_masked_language_model,
    small_question_answerer,
    with_fusion,
)
from tests.small_translator import small_subwords, small_translator

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
    assert "attention, head 2" in file.read_text()  # of its only layer


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
    assert done.exit_code == 2 and "`--metrics` must be of " in done.stderr
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
        (["--picture", "attention"], "attention, mean of the heads", ["\u2581b", "all"]),
    ],
)
def test_a_translator(arguments, title, labels, translator, tmp_path):
    file = tmp_path / "a.svg"
    done = plot(translator, file, "--text", "a ball", *arguments)
    assert done.exit_code == 0, done.stderr
    drawn = re.findall("<!-- (.*?) -->", file.read_text(encoding="utf-8"))
    assert title in drawn
    assert set(labels) <= set(drawn), drawn


def test_one_attention_needs_no_number(tmp_path):
    subwords = small_subwords()
    bahdanau = Bahdanau(len(subwords), 8, embedding_dim=8)
    model = Translator(bahdanau, subwords, subwords, length_ratio=0.4, length_extra=3)
    file = tmp_path / "a.svg"
    done = plot(model.save_pretrained(tmp_path / "model"), file, "--text", "a ball")
    assert done.exit_code == 0, done.stderr
    assert "<!-- alignment -->" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--text", "a", "--layer", "3"], "`--layer` must be in 1 to 2. Received: 3"),
        (["--text", "a", "--head", "3"], "`--head` must be in 1 to 2. Received: 3"),
        (["--text", " "], "`--text` must have something to translate. Received: an empty text"),
        (["--question", "a", "--context", "a"], "must be given for a translator, with --text. Rec"),
        (["--text", "a", "--metrics", "loss"], "for curve only. Received: --picture alignment"),
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
        (["--text", "a", "--pieces"], "`--pieces` must be given for alignment only. Received: --p"),
        (["--text", "a", "--picture", "curve"], "for span or attention or alignment or fusion on"),
        (["--layer", "1", "--picture", "curve"], "for attention or alignment only. Received: --p"),
        (["--picture", "span", "--image", "a.png"], "`--image` must be given for caption only. R"),
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


@pytest.fixture(scope="module")
def fused(tmp_path_factory):
    model = with_fusion(small_classifier(), ("mnli", "sick"))
    return model.save_pretrained(tmp_path_factory.mktemp("models") / "fused")


def drawn(file):
    return re.findall("<!-- (.*?) -->", file.read_text(encoding="utf-8"), re.S)


def test_a_fusion(fused, tmp_path):
    file = tmp_path / "fusion.svg"
    done = plot(fused, file, "--picture", "fusion", "--text", "a good film")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout) == {"picture": str(file)}
    words = " ".join(drawn(file))
    assert {"mnli", "sick", "layer"} <= set(drawn(file))
    assert "mean weight of each adapter" in words and "1 example, 5 tokens" in words
    shares = [float(one) for one in drawn(file) if re.fullmatch(r"0\.\d\d", one)]
    assert len(shares) == 2 and sum(shares) == pytest.approx(1.0, abs=0.011)


def test_a_fusion_over_a_file(fused, tmp_path):
    table, file = tmp_path / "dev.tsv", tmp_path / "fusion.svg"
    table.write_text("text_a\tlabel\na good film\tyes\nbad\tno\n")
    done = plot(fused, file, "--picture", "fusion", "--input", str(table))
    assert done.exit_code == 0, done.stderr
    assert "2 examples, 8 tokens" in " ".join(drawn(file))
    table.write_text("body\tlabel\na good film\tyes\n")
    done = plot(fused, file, "--picture", "fusion", "--input", str(table))
    assert done.exit_code == 2 and "text_a" in done.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--picture", "fusion"], "must be given, or `--input` for a fusion."),
        (["--picture", "span", "--input", "a"], "`--input` must be given for fusion only. Receive"),
        (["--input", __file__, "--text", "a"], "must be given, or `--input` for a fusion."),
        (["--input", "no.tsv"], "`--input` must be a file. Received: 'no"),
        (["--picture", "fusion", "--text", "a"], "kbert train --fuse` makes it. Received: Class"),
    ],
)
def test_bad_options_of_a_fusion(arguments, message, finished_run, tmp_path):
    done = plot(finished_run, tmp_path / "a.png", *arguments)
    assert done.exit_code == 2 and message in " ".join(done.stderr.split())


def test_a_fusion_of_a_model_without_examples(tmp_path):
    model = with_fusion(small_masked_language_model()).save_pretrained(tmp_path / "model")
    (tmp_path / "a.txt").write_text("a film")
    given = ["--picture", "fusion", "--input", str(tmp_path / "a.txt")]
    done = plot(model, tmp_path / "a.png", *given)
    assert done.exit_code == 2
    assert "`--input` must be given for a model of `kbert train`; others" in done.stderr
