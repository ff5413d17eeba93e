"""`kbert launch`: what it starts."""

import sys

from typer.testing import CliRunner

import kbert.cli.commands.launch
from kbert.cli.main import app


def test_it_starts_a_verb_with_the_strategy(monkeypatch):
    started = []

    def launch_workers(*arguments):
        started.append(arguments)
        return 9

    monkeypatch.setattr(kbert.cli.commands.launch, "launch_workers", launch_workers)
    verb = ["pretrain", "a.txt", "--size", "mini"]
    result = CliRunner().invoke(app, ["launch", "--workers", "3", "--restarts", "1", *verb])
    assert result.exit_code == 9
    command = [sys.executable, "-m", "kbert.cli.main", *verb, "--strategy", "multi-worker"]
    assert started == [(command, 3, 1)]


def test_it_needs_a_verb():
    result = CliRunner().invoke(app, ["launch"])
    assert result.exit_code == 2
    assert "`COMMAND` must be given" in result.stderr
