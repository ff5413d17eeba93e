import numpy as np

from kbert.tasks.classification.task import Classification
from kbert.tasks.registry import typed_answer


def texts(*values: str) -> np.ndarray:
    return np.array([value.encode() for value in values], object)


def test_a_class():
    found = typed_answer(
        {
            "label": "größer".encode(),
            "score": np.float32(0.75),
            "scores": np.array([0.25, 0.75], np.float32),
            "labels": texts("kleiner", "größer"),
            "truncated": np.bool_(True),
        }
    )
    assert found == Classification("größer", 0.75, {"kleiner": 0.25, "größer": 0.75}, True)


def test_a_label_alone_is_no_class():
    assert typed_answer({"label": b"a"}) == {"label": "a"}
