import functools
import io
import sys
from collections.abc import Iterator

import pytest
from rich.console import Console

from kbert.cli.actions import demo
from kbert.cli.actions.demo import ask_questions, find_names


@pytest.fixture(scope="module", autouse=True)
def loaded_once() -> Iterator[None]:
    """Each model is read from its files for the first test that asks it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(demo, "load", functools.cache(demo.load))
        yield


def test_answers_are_shown_and_measured(minilm_directory):
    file = io.StringIO()
    found = ask_questions(Console(file=file, width=100))
    text = file.getvalue()
    assert "Where are the logbooks kept today?" in text and "Stranay" in text
    assert found["f1"] > 70  # the trained head has 96 there, a random one about 5
    assert f"All 22 sample questions: exact match {found['exact_match']:.0f} %" in text
    assert "questions.json" in text


def test_answers_are_shown_without_the_extra_that_measures(minilm_directory, monkeypatch):
    monkeypatch.setitem(sys.modules, "official.nlp.tools", None)
    file = io.StringIO()
    assert ask_questions(Console(file=file, width=400)) == {}
    text = file.getvalue()
    assert "Stranay" in text
    assert "need SQuAD's official evaluation: pip install \".[squad]\"" in text


def test_names_are_shown_and_measured(minilm_directory):
    file = io.StringIO()
    found = find_names(Console(file=file, width=100))
    text = file.getvalue()
    assert "Reykjavik" not in text and "Owen Pugh PER" in text
    assert f"recall {found['recall']:.2f}" in text and "sentences.conll" in text
