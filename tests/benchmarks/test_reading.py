"""Whole articles: what all questions give is kept apart from what the contenders give."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import kbert


@pytest.fixture
def reading(
    program: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """Runs the program on sample questions, with no model and no contender."""
    loaded = program("reading")
    count = iter(range(1000))
    monkeypatch.setattr(loaded.QuestionAnswerer, "from_pretrained", lambda _: _Unwritten())
    monkeypatch.setattr(loaded, "contenders", lambda *_: [])
    monkeypatch.setattr(loaded, "every", lambda *_: {"f1": next(count)})
    samples = Path(kbert.__file__).parent / "data" / "samples" / "questions" / "questions.json"

    def run(model: str, output: Path, *options: str) -> None:
        given = [str(samples), "--model", model, "--questions", "2", "--output", str(output)]
        monkeypatch.setattr(sys, "argv", ["reading", *given, *options])
        loaded.main()

    return run


class _Unwritten:
    """A model that leaves nothing where it is saved."""

    def save_pretrained(self, *_: Any, **__: Any) -> None:
        """Writes nothing."""


def test_all_questions_have_results_of_their_own(reading, tmp_path: Path):
    output, other = tmp_path / "reading.json", tmp_path / "reading_every.json"
    reading("one", output, "--every")
    reading("folder/two", output, "--every")
    kept = other.read_text()
    # A run without --every neither measures these rows anew nor takes them over as its own.
    reading("three", output)
    assert other.read_text() == kept
    rows = json.loads(kept)
    assert [(row["model"], row["f1"]) for row in rows] == [("one", 0), ("two", 1)]
    assert all(row["file"] == "questions.json" and row["measured"] for row in rows)
    assert "every" not in json.loads(output.read_text())
