import numpy as np

from kbert.tasks.registry import typed_answer
from kbert.tasks.regression.task import Score


def test_a_score():
    assert typed_answer({"score": np.float32(2.5)}) == Score(2.5)
    assert typed_answer({"score": np.float32(2.5), "truncated": np.bool_(True)}) == Score(2.5, True)
    assert typed_answer({"score": np.float32(2.5), "y": b"a"}) == {"score": 2.5, "y": "a"}
