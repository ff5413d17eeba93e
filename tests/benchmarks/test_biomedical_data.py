"""Of each article no more questions are asked than it says, and the others all."""

from collections import Counter
from collections.abc import Callable
from types import ModuleType

import pytest

from kbert.data.question_examples import QuestionExamples

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
