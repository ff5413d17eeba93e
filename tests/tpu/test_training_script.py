"""What the scripts that train on a TPU share."""

import errno
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbert.training import run as training
from kbert.training.runs.stopped_runs import TrainingStopped


@pytest.fixture(scope="module")
def script(in_checkout: Callable[[str], Path]) -> dict[str, Any]:
    return runpy.run_path(str(in_checkout("tpu/training_script.py")))


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text("task: regression\ntrain: x.tsv\nencoder: bert-base-uncased\noutput: o\n")
    return path


def code_of(script: dict[str, Any], config: Path, *tasks: str) -> int:
    found: int = script["run"]("Trains.", tasks or ["regression"], [str(config), "--dry-run"])
    return found


@pytest.mark.parametrize(
    "error, code",
    [
        (FileNotFoundError("no x.tsv"), 2),
        (ValueError("no such label"), 2),
        (OSError(errno.ENOSPC, "No space left on device"), 1),
        (ConnectionError("the hub does not answer"), 1),
        (TrainingStopped("stopped by SIGTERM"), 75),
    ],
)
def test_errors_have_the_exit_codes_of_kbert(script, config, monkeypatch, capsys, error, code):
    def train(own: Any) -> Path:
        raise error

    monkeypatch.setattr(training, "train", train)
    assert code_of(script, config) == code
    assert capsys.readouterr().err.endswith(f": {error}\n")


def test_a_run_is_trained_here_and_its_folder_printed(script, config, monkeypatch, capsys):
    monkeypatch.setattr(training, "train", lambda own: Path(own.output, own.strategy))
    assert code_of(script, config) == 0
    assert capsys.readouterr().out == "o/one\n"


def test_another_task_is_refused(script, config, capsys):
    assert code_of(script, config, "pretraining", "translation") == 2
    told = "`task` must be pretraining or translation. Received: task='regression'"
    assert told in capsys.readouterr().err
