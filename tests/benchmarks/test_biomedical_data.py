"""What the biomedical comparison is made of: questions of each article, and a reader."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from kbert.checkpoints.adapter_folder import read_adapters
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.data.questions.question_examples import QuestionExamples

COUNTS = {"long": 9, "short": 2, "middle": 4}


@pytest.fixture
def examples() -> QuestionExamples:
    """Questions about three articles, in turns."""
    contexts = [name for i in range(9) for name, count in COUNTS.items() if i < count]
    rows = range(len(contexts))
    return QuestionExamples(
        ids=[str(row) for row in rows],
        questions=["Who?" for _ in rows],
        contexts=contexts,
        answers=[[] for _ in rows],
        titles=["" for _ in rows],
        source="by hand",
        paths=[f"line {row}" for row in rows],
    )


@pytest.mark.parametrize("most", [1, 4, 9])
def test_at_most(
    program: Callable[[str], ModuleType], examples: QuestionExamples, most: int
):
    chosen = program("biomedical_data").at_most(examples, most)
    wanted = {name: min(count, most) for name, count in COUNTS.items()}
    assert Counter(chosen.contexts) == wanted
    order = [int(id) for id in chosen.ids]
    assert order == sorted(order)
    assert program("biomedical_data").at_most(examples, most).ids == chosen.ids


def test_a_reader_s_adapters_belong_to_another_encoder(
    program: Callable[[str], ModuleType], tmp_path: Path
):
    """The arrays of the folder that it writes."""
    (tmp_path / "encoder").mkdir()
    put_on = program("biomedical_reader").put_on
    put_on(tmp_path / "encoder", tmp_path / "reader")
    asked: list[str] = []

    def read_base(name: str) -> Checkpoint:
        asked.append(name)
        return Checkpoint(config={}, arrays={})

    found = read_adapters(tmp_path / "reader", read_base)
    assert found.adapter_config["trained"] == ["task"] and found.adapters
    assert asked == [str(tmp_path / "encoder")]
    with pytest.raises(FileNotFoundError):
        put_on(tmp_path / "none", tmp_path / "other")
