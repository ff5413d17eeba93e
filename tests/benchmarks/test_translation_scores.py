"""Tests for the scores of translations without capitals."""

from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest

TRAINING = ["Ein Mann sieht den Hund.", "Hier ist ein Hund", "Der alte Mann , der Hund"]


@pytest.fixture
def module(program: Callable[[str], ModuleType]) -> ModuleType:
    """The part of benchmarks/ that scores."""
    return program("side_by_side.translation_scores")


@pytest.mark.parametrize(
    "text, expected",
    [
        ("ein hund sieht den mann .", "Ein Hund sieht den Mann ."),
        ("der vogel", "Der vogel"),  # never seen: as it came
        ("", ""),
    ],
)
def test_capitals_come_back_as_they_are_in_the_training_text(
    module: ModuleType, text: str, expected: str
) -> None:
    assert module.recaser(TRAINING, "de")(text) == expected


def test_cased_scores_are_of_text_with_capitals(module: ModuleType) -> None:
    written = ["Ein Hund sieht den Mann.", "Der Hund ist hier bei dem Vogel."]
    lowered = ["ein hund sieht den mann .", "der hund ist hier bei dem vogel ."]
    split = SimpleNamespace(targets=lowered, references=written)
    found = module.scores(lowered, split, "de", module.recaser(TRAINING, "de"))
    assert found["tokenized_lowercase_bleu"] == 100
    assert found["lowercase_bleu"] == pytest.approx(100)
    # "Vogel" alone is never seen. As the text came, six words lack their capitals.
    unchanged = module.scores(lowered, split, "de", lambda text: text)
    assert unchanged["bleu"] < 40 < 70 < found["bleu"] < 100
