import numpy as np

from kbert.tasks.multiple_choice.task import Choice
from kbert.tasks.registry import typed_answer


def test_a_choice():
    row = {"choice": np.int32(1), "score": np.float32(0.5), "scores": np.array([0.5, 0.5], "f")}
    assert typed_answer(row) == Choice(1, 0.5, [0.5, 0.5])
