"""`kbert serve` in a process of its own: it tells where it listens, and ends in order."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from typer.testing import CliRunner

from kbert.cli.main import app
from kbert.serving.export.export import export
from tests.serving.tiny_models import Meter


@pytest.mark.slow
def test_it_serves_until_it_is_told_to_end(tmp_path: Path):
    export(Meter(), tmp_path / "models")
    command = [sys.executable, "-m", "kbert.cli.main", "serve", str(tmp_path / "models"), "--web"]
    command += ["--rest-port", "0", "--grpc-port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ}
    ) as process:
        try:
            told = json.loads(process.stdout.readline())
            assert told["models"] == ["meter"] and told["page"] == told["rest"] + "/"
            assert told["rest"].startswith("http://127.0.0.1:")
            assert told["grpc"].startswith("grpc://127.0.0.1:")
            url = f"{told['rest']}/v1/models/meter:predict"
            found = requests.post(url, json={"inputs": ["abc"]}, timeout=30).json()
            assert found["outputs"]["length"] == [3]
            process.send_signal(signal.SIGTERM)
            rest, words = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0 and rest == ""
    assert words.splitlines()[-1] == "Ended." and "Traceback" not in words


@pytest.mark.parametrize("loaded", ["limits.Limits", "server.LocalServer"])
def test_sigterm_ends_it_while_it_loads(loaded, tmp_path: Path, monkeypatch):
    def interrupted(*_):
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(f"kbert.local_server.{loaded}", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    try:
        assert CliRunner().invoke(app, ["serve", str(tmp_path)]).exit_code == 0
    finally:
        signal.signal(signal.SIGTERM, before)


def test_bad_input_is_told_in_words(tmp_path: Path):
    runner = CliRunner()
    found = runner.invoke(app, ["serve", str(tmp_path)])
    assert found.exit_code == 2 and "`base` must be the folder of a model" in found.output
    found = runner.invoke(app, ["serve", str(tmp_path), "--timeout", "0"])
    assert found.exit_code == 2 and "`--timeout` must be positive" in found.output
