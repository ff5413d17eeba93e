import numpy as np

from kbert.tasks.registry import typed_answer
from kbert.tasks.translation.task import Translation


def texts(*values: str) -> np.ndarray:
    return np.array([value.encode() for value in values], object)


def test_a_translation():
    row = {
        "translation": b"Hallo",
        "score": np.float32(-0.5),
        "nbest_translation": texts("Hallo", "Hey"),
        "nbest_score": np.array([-0.5, -1.0], np.float32),
        "truncated": np.bool_(False),
    }
    nbest = [("Hallo", -0.5), ("Hey", -1.0)]
    assert typed_answer(row) == Translation("Hallo", -0.5, nbest, False)
