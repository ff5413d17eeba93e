"""Files in, files out: for runs, exports and models that read."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from kbert.cli.actions import answering
from kbert.cli.actions.answering import model_checksum
from kbert.cli.main import app
from kbert.serving.export.export import export
from kbert.serving.loading.exported import load_export
from tests.serving.tiny_models import Meter
from tests.small_pipelines import small_multiple_choice, small_question_answerer

TEXTS = ["the film was good", "the plot was dull", "", "bad " * 30]
TEXTS += ['a\t"b"\nc', "nul \0", "中 \U0001f600"]


def invoke(*arguments):
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    return result, None if result.exit_code else json.loads(result.stdout)


def lines(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_run_answers_a_file(finished_run, tmp_path):
    source = write(tmp_path / "in.jsonl", [{"n": i, "text": text} for i, text in enumerate(TEXTS)])
    result, found = invoke(finished_run, "--input", source, "--output", tmp_path / "out.jsonl")
    assert result.exit_code == 0, result.stderr
    assert found["rows"] == len(TEXTS) and found["output"] == str(tmp_path / "out.jsonl")
    answered = lines(tmp_path / "out.jsonl")
    assert [row["text"] for row in answered] == TEXTS
    assert [row["truncated"] for row in answered] == [False] * 3 + [True] + [False] * 3
    alone, _ = invoke(finished_run, "--text", TEXTS[0])
    one = json.loads(alone.stdout)
    assert answered[0]["label"] == one["label"]
    assert answered[0]["score"] == pytest.approx(one["score"], abs=1e-5)


def test_a_version_that_comes_later_answers_nothing(tmp_path, monkeypatch):
    """All blocks, also those of a run that goes on, are of the version that was the newest."""
    seen = []

    def opened(path, nbest, task):
        seen.append(path)
        raise ValueError("stop")

    monkeypatch.setattr(answering, "open_model", opened)
    path = export(Meter(), tmp_path / "exports")
    source = write(tmp_path / "in.jsonl", [{"text": "a"}])
    result, _ = invoke(path.parent, "--input", source, "--output", tmp_path / "o.jsonl")
    assert "stop" in result.stderr and seen == [path]


def test_models_that_read_several_columns(tmp_path):
    rows = [{"question": "what", "context": text} for text in TEXTS]
    source = write(tmp_path / "in.jsonl", rows)
    small_question_answerer().save_pretrained(tmp_path / "reader")
    result, _ = invoke(tmp_path / "reader", "--input", source, "--output", tmp_path / "out.jsonl")
    assert result.exit_code == 0, result.stderr
    for row in lines(tmp_path / "out.jsonl"):
        assert row["context"][row["start"] : row["end"]] == row["answer"]
    path = export(small_multiple_choice(), tmp_path / "exports", "chooser", max_batch_size=2)
    rows = [{"context": "a", "choices": ["good", "bad", "film"][: 2 + i % 2]} for i in range(5)]
    source = write(tmp_path / "choices.jsonl", rows)
    result, _ = invoke(path, "--input", source, "--output", tmp_path / "choices.out.jsonl")
    assert result.exit_code == 0, result.stderr
    assert [len(row["scores"]) for row in lines(tmp_path / "choices.out.jsonl")] == [2, 3, 2, 3, 2]


def test_a_column_that_an_option_names(finished_run, tmp_path):
    source = write(tmp_path / "in.jsonl", [{"mail": text, "text": ""} for text in TEXTS[:1]])
    output = tmp_path / "out.jsonl"
    result, _ = invoke(finished_run, "--input", source, "--output", output, "--text-a", "mail")
    assert result.exit_code == 0, result.stderr
    _, one = invoke(finished_run, "--text", TEXTS[0])
    (row,) = lines(output)
    assert row["scores"] == pytest.approx(one["scores"], abs=1e-5)


def test_what_is_refused(finished_run, tmp_path):
    source = write(tmp_path / "in.jsonl", [{"text": "a"}, {"txt": "b"}])
    out, excel = tmp_path / "out.jsonl", tmp_path / "excel.csv"
    excel.write_text("text;label\nhe said; no;up\n")
    for arguments, message in (
        (["--input", excel, "--output", out], "excel.csv, line 1: the fields must be separated by"),
        (["--input", source], "`--output` must be given where `--input` or `--part` is"),
        (["--output", out], "`--input` must be given where `--output` or `--part` is"),
        (["--input", source, "--output", out, "--text", "a"], "without texts, --show and"),
        (["--input", source, "--output", out, "--batch-size", "9"], "--show and --batch-size"),
        (["--input", source, "--output", out], "in.jsonl, line 2: a row must have `text`, the in"),
        (["--input", source, "--output", tmp_path / "a.txt"], "`--output` must end in .jsonl"),
        (["--input", tmp_path / "none.tsv", "--output", out], "`--input` must be a file"),
        (["--input", source, "--output", out, "--task", "x"], "`--task` must be given for an exp"),
        (["--input", source, "--output", out, "--part", "0/2"], "from 1 to N, such as 3/8. Rec"),
        (["--input", source, "--output", out, "--part", "3/2"], "such as 3/8. Received: '3/2'"),
        (["--input", source, "--output", out, "--part", "2"], "such as 3/8. Received: '2'"),
        (["--input", source, "--output", out, "--part", "1/2"], "has blocks of 8,192 rows, 1. Rec"),
        (["--text", "a", "--part", "1/2"], "`--input` must be given where `--output` or"),
    ):
        result, _ = invoke(finished_run, *arguments)
        assert result.exit_code == 2 and message in result.stderr, result.stderr
        assert result.stdout == "" and not out.exists()


def test_checksums_tell_models_apart(finished_run, tmp_path):
    assert model_checksum(finished_run) == model_checksum(finished_run / "model")
    assert model_checksum("minilm-squad") != model_checksum("minilm-ner")


@pytest.mark.slow
def test_killed_at_random_moments(finished_run, tmp_path):
    """The same command again makes the same bytes as without a stop."""
    from kbert.training.runs.load_model import load_model

    path = export(load_model(finished_run), tmp_path / "exports", "m", max_batch_size=2)
    assert load_export(path).labels
    rows = [{"n": i, "text": TEXTS[i % 7] * (1 + i % 11)} for i in range(60_000)]
    source = write(tmp_path / "in.jsonl", rows)
    command = [sys.executable, "-m", "kbert.cli.main", "predict", str(path), "--input", str(source)]
    whole, out = tmp_path / "whole.jsonl", tmp_path / "out.jsonl"
    start = time.monotonic()
    subprocess.run([*command, "--output", str(whole)], check=True, capture_output=True)
    seconds = time.monotonic() - start
    kills = 0
    for turn in range(12):
        with subprocess.Popen([*command, "--output", str(out)], stdout=subprocess.PIPE) as process:
            try:
                process.wait(seconds * (0.5 + 0.07 * turn))
            except subprocess.TimeoutExpired:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
        if out.exists():
            break
    assert kills and out.read_bytes() == whole.read_bytes()
    assert [one for one in tmp_path.iterdir() if one.name.startswith(".")] == []
