import numpy as np

from kbert.tasks.multi_label.task import LabelSet
from kbert.tasks.registry import json_answer, typed_answer


def outputs(*chosen):
    return {
        "labels": np.array(["größer".encode(), b"rot", b"alt"], object),
        "probabilities": np.array([0.25, 0.75, 0.5], np.float32),
        "chosen": np.array(chosen),
        "truncated": np.bool_(True),
    }


def test_labels():
    every = {"größer": 0.25, "rot": 0.75, "alt": 0.5}
    assert typed_answer(outputs(True, True, False)) == LabelSet(["rot", "größer"], every, True)
    assert json_answer(outputs(False, False, False)) == {
        "labels": [],
        "probabilities": every,
        "truncated": True,
    }


def test_labels_alone_are_no_answer():
    assert typed_answer({"labels": b"a"}) == {"labels": "a"}
