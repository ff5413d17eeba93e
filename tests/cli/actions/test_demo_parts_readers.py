import io
import sys

from rich.console import Console

from kbert.cli.actions.demo import ask_questions, find_names


def test_answers_are_shown_and_measured(minilm_directory):
    file = io.StringIO()
    found = ask_questions(Console(file=file, width=100))
    text = file.getvalue()
    assert "Where are the logbooks kept today?" in text and "Stranay" in text
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
