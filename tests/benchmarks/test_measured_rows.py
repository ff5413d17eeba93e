"""Rows of tables, made of what contenders have said: no contender runs here."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

Load = Callable[[str], ModuleType]


@pytest.fixture
def contender(program: Load) -> Callable[..., Any]:
    """Makes a contender that has run: its facts, and the milliseconds of each round of a work."""

    def make(name: str, facts: dict[str, Any], **rounds: list[float]) -> Any:
        kind = program("side_by_side.contender").Contender
        made = object.__new__(kind)  # a whole one has a file for the errors of its process
        made.name, made.facts, made.failure = name, facts, ""
        made.answers = {
            work.replace("_", " "): [{"milliseconds": [one]} for one in times]
            for work, times in rounds.items()
        }
        return made

    return make


@pytest.fixture
def spoken(program: Load, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """translation_speed, whose pieces are words."""
    pytest.importorskip("sentencepiece")
    loaded = program("translation_speed")

    class Words:
        def __init__(self, model_file: str) -> None:
            assert model_file == "pieces"

        def encode(self, texts: list[str]) -> list[list[str]]:
            return [text.split() for text in texts]

    monkeypatch.setattr(loaded.sentencepiece, "SentencePieceProcessor", Words)
    return loaded


def test_tokens_of_a_fixed_number_of_steps_are_the_same_for_all(spoken: ModuleType, contender):
    """Of 3 steps kbert makes two words and the end, others three words."""
    own = contender("kbert float32", {"translations": ["a b"]}, translate=[10.0])
    other = contender("transformers", {"translations": ["a b c"]}, translate=[10.0])
    for steps, tokens in ((3, [3, 3]), (None, [3, 4])):
        rows = spoken.rows_of([own, other], "pieces", steps)["rows"]
        assert [row["tokens_per_second"] for row in rows] == [100 * count for count in tokens]


def test_a_fused_translator_without_its_vanilla_one_has_no_ratio(spoken: ModuleType, contender):
    fused = contender("kbert float32, fused", {"translations": ["a b"]}, translate=[30.0])
    vanilla = contender("kbert float32", {"translations": ["a b"]}, translate=[10.0])
    assert "time_by_vanilla" not in spoken.rows_of([fused], "pieces", None)["rows"][0]
    assert spoken.rows_of([vanilla, fused], "pieces", None)["rows"][1]["time_by_vanilla"] == 3.0
