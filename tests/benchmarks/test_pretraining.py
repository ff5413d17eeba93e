"""What was measured of a small BERT stays, where another part is measured anew."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Load = Callable[[str], ModuleType]
SETTINGS = {"steps": 30, "rate": 0.1, "tuning_rate": 0.2}


@pytest.fixture
def measured(program: Load, tmp_path: Path) -> argparse.Namespace:
    """Arguments like those of a measurement whose results are there."""
    pretraining = program("pretraining")
    output = tmp_path / "pretraining.json"
    result = {"machine": pretraining.machine(), "settings": SETTINGS | pretraining.BATCH}
    result |= {"curve": [1], "tuned": [2], "objectives": [3], "objectives_tuned": [4]}
    output.write_text(json.dumps(result))
    return argparse.Namespace(output=output, parts=["objectives"], **SETTINGS)


def kept(program: Load, arguments: argparse.Namespace) -> set[str]:
    """The tables that stay."""
    found: dict[str, Any] = program("pretraining").kept(arguments)
    return set(found) - {"machine", "settings"}


def test_parts_that_are_not_asked_for_stay(program: Load, measured: argparse.Namespace):
    assert kept(program, measured) == {"curve", "tuned"}
    measured.parts = ["hour", "objectives"]
    assert kept(program, measured) == set()


@pytest.mark.parametrize("key", ["steps", "rate", "tuning_rate"])
def test_nothing_of_other_settings_stays(
    program: Load, measured: argparse.Namespace, key: str
):
    setattr(measured, key, 1)
    assert kept(program, measured) == set()


def test_nothing_of_another_machine_stays(
    program: Load, measured: argparse.Namespace, monkeypatch: pytest.MonkeyPatch
):
    pretraining = program("pretraining")
    other = pretraining.machine() | {"cores": 64}
    monkeypatch.setattr(pretraining, "machine", lambda: other)
    assert kept(program, measured) == set()


def test_without_results_there_is_nothing_to_keep(program: Load, measured: argparse.Namespace):
    measured.output.unlink()
    assert kept(program, measured) == set()
