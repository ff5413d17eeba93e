import io
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
import typer
from typer.testing import CliRunner

from kbert.cli.actions import answering
from kbert.cli.actions.answering import Answering
from kbert.cli.commands.predict import predict
from kbert.cli.main import app

TEXTS = ["the film was good", "the plot was dull", "", "bad " * 30, "the film was very fine"]


def invoke(*arguments, stdin=None):
    return CliRunner().invoke(app, ["predict", *map(str, arguments)], input=stdin)


def rows(text):
    return [json.loads(line) for line in text.splitlines()]


def test_texts_from_options(finished_run):
    result = invoke(finished_run, "--text", TEXTS[0], "--text", TEXTS[1])
    assert result.exit_code == 0, result.stderr
    keys = {"label", "score", "scores", "truncated"}
    assert [set(row) for row in rows(result.stdout)] == [keys, keys]


def test_lines_from_stdin_whatever_the_batches(finished_run):
    stdin = "".join(f"{text}\n" for text in TEXTS)
    one = rows(invoke(finished_run, stdin=stdin).stdout)
    two = rows(invoke(finished_run, "--batch-size", 2, stdin=stdin).stdout)
    assert len(one) == len(two) == len(TEXTS)
    for a, b in zip(one, two):
        assert a["label"] == b["label"] and abs(a["score"] - b["score"]) < 1e-5
    assert [row["truncated"] for row in one] == [False, False, False, True, False]


def test_a_batch_is_answered_before_the_next_line_is_read(finished_run, monkeypatch):
    written = io.StringIO()

    def lines():
        yield b"the film was good\n"
        yield b"the film was bad\n"
        assert len(rows(written.getvalue())) == 2
        yield b"the plot was dull"

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=lines(), isatty=lambda: False))
    monkeypatch.setattr(sys, "stdout", written)
    predict(finished_run, batch_size=2)
    assert len(rows(written.getvalue())) == 3


@pytest.mark.parametrize(
    "inputs, told",
    [
        (("text",), "Reading texts, one a line; Ctrl-D ends them."),
        (("image",), "Reading names of image files, one a line; Ctrl-D ends them."),
        (
            ("question", "context"),
            "Reading texts, one a line, with a tab between question and context; Ctrl-D ends them.",
        ),
    ],
)
def test_at_a_terminal_it_says_what_it_reads(inputs, told, finished_run, monkeypatch, capsys):
    monkeypatch.setattr(answering, "open_model", lambda *_: Answering(inputs, None))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=iter(()), isatty=lambda: True))
    predict(finished_run)
    written = capsys.readouterr()
    assert (written.out, written.err) == ("", f"{told}\n")


def test_an_empty_stdin_is_told(finished_run):
    result = invoke(finished_run, stdin="")
    told = "No text came from stdin; --text or --input gives some.\n"
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", told)
    assert invoke(finished_run, stdin="\n").stderr == ""  # one empty text


def test_lines_may_be_objects(finished_run):
    named = rows(invoke(finished_run, stdin=json.dumps({"text": TEXTS[0], "n": 1})).stdout)
    assert named == rows(invoke(finished_run, stdin=TEXTS[0]).stdout)


def test_what_utf8_cannot_hold_is_replaced(finished_run):
    half = '"the film \\ud83d"'  # of an emoji, as programs cut it
    (given,) = rows(invoke(finished_run, "--text", json.loads(half)).stdout)
    piped = rows(invoke(finished_run, stdin=f'{{"text": {half}}}\nthe film \ufffd\n').stdout)
    assert [row["label"] for row in piped] == [given["label"]] * 2
    assert [row["score"] for row in piped] == pytest.approx([given["score"]] * 2, abs=1e-5)


def test_a_closed_stdin_is_told(finished_run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(typer.Exit):
        predict(finished_run)


@pytest.mark.slow
def test_answers_stream_out_of_a_real_process(finished_run):
    """Each batch is answered before the next one is there; stdout is JSON alone."""
    command = [sys.executable, "-m", "kbert.cli.main", "predict", str(finished_run)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*command, "--batch-size", "2"], **pipes) as process:
        os.write(process.stdin.fileno(), b"the film was good\nthe film was bad\n")
        first = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.stdin.write(b"the plot was dull")
        process.stdin.close()
        rest = rows(process.stdout.read().decode())
        errors = process.stderr.read().decode()
    assert process.returncode == 0 and len(first) == 2 and len(rest) == 1
    assert errors == ""


def test_bad_input_is_told(finished_run, tmp_path):
    for arguments, stdin, message in (
        ([finished_run, "--text", "a", "--text-a", "b"], None, "must not be given together with"),
        ([finished_run, "--text-a", "b"], None, "must be given together. Received: --text-a"),
        (
            [finished_run, "--question", "a", "--context", "b", "--text", "c"],
            None,
            "and not both. Received: `--question` with `--context` with `--text`",
        ),
        (
            [finished_run, "--text-a", "a", "--text-b", "b"],
            None,
            "Error: `--text-a` with `--text-b`: the model reads one text (--text). Received: 2 "
            "texts: 'a', 'b'",
        ),
        (
            [finished_run, "--question", "a", "--context", "b"],
            None,
            "Error: `--question` with `--context`: the model reads one text (--text). Rec",
        ),
        ([finished_run], b"ok\n\xff\n", "stdin, line 2: the text must be UTF-8"),
        ([finished_run], '{"text": "a"}\n{"mail": "b"}', "line 2: the object must have a text n"),
        (
            [finished_run, "a text"],
            None,
            "Received: 'a text', which does not exist. Texts go into --text.",
        ),
        ([tmp_path], "a", "`RUN` must be a checkpoint"),
        (
            [finished_run, "--text", "a", "--batch-size", 2],
            None,
            "`--batch-size` must be given for lines of stdin only. Received: `--text`",
        ),
        ([tmp_path / "none"], "a", "none"),
    ):
        result = invoke(*arguments, stdin=stdin)
        assert result.exit_code == 2, arguments
        assert message in result.stderr and result.stdout == ""


def test_an_incomplete_run_does_not_answer(tmp_path):
    (tmp_path / "run.incomplete").mkdir()
    result = invoke(tmp_path / "run", "--text", "a")
    assert result.exit_code == 2 and "stopped before its end" in result.stderr
