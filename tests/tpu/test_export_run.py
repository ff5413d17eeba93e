"""The script that exports a run of a TPU."""

import errno
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kbert.serving.export import export as exporting
from kbert.training.runs import load_model as loading


@pytest.fixture(scope="module")
def main(in_checkout: Callable[[str], Path]) -> Callable[[list[str]], int]:
    names = runpy.run_path(str(in_checkout("tpu/export_run.py")))
    found: Callable[[list[str]], int] = names["main"]
    return found


def test_what_is_no_run_is_bad_input(main, tmp_path: Path, capsys):
    assert main([str(tmp_path / "none"), str(tmp_path / "base")]) == 2
    assert capsys.readouterr().err.startswith("export_run: ")


def test_a_full_disk_is_a_failure(main, tmp_path: Path, monkeypatch, capsys):
    def export(*given: Any) -> Path:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(loading, "load_model", lambda run: None)
    monkeypatch.setattr(exporting, "export", export)
    assert main([str(tmp_path / "run"), str(tmp_path / "base")]) == 1
    assert "No space left on device" in capsys.readouterr().err


def test_the_folder_is_printed(main, tmp_path: Path, monkeypatch, capsys):
    monkeypatch.setattr(loading, "load_model", lambda run: "model")
    monkeypatch.setattr(exporting, "export", lambda model, base, name: Path(base, name, "1"))
    assert main([str(tmp_path / "run"), "models", "--name", "m"]) == 0
    assert capsys.readouterr().out == "models/m/1\n"
