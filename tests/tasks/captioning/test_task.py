from types import SimpleNamespace
from typing import Any

import numpy as np

from kbert.tasks.captioning.task import TASK, Caption
from kbert.tasks.registry import typed_answer


def row(**more: Any) -> dict[str, Any]:
    return {
        "caption": b"a red star",
        "score": np.float32(-0.5),
        "nbest_caption": np.array([b"a red star", b"a star", b""], object),
        "nbest_score": np.array([-0.5, -1.0, -np.inf], np.float32),
        "problem": b"",
        **more,
    }


def test_a_caption():
    nbest = [("a red star", -0.5), ("a star", -1.0)]
    assert typed_answer(row()) == Caption("a red star", -0.5, nbest, "")
    broken = row(problem=b"no image")
    assert typed_answer(broken).problem == "no image"


def test_a_search_has_room_for_more_captions():
    model = SimpleNamespace(beam_size=5, nbest=1)
    TASK.give_more(model, 3)
    assert (model.beam_size, model.nbest) == (5, 3)
    TASK.give_more(model, 8)
    assert (model.beam_size, model.nbest) == (8, 8)


def test_a_search_that_found_fewer_is_json():
    plain = {
        **{"caption": "a", "score": -0.5, "problem": ""},
        **{"nbest_caption": ["a", ""], "nbest_score": [-0.5, -np.inf]},
    }
    assert TASK.json_answer(plain) == {
        **{"caption": "a", "score": -0.5},
        "nbest": [{"caption": "a", "score": -0.5}],
        "problem": "",
    }
    assert (TASK.name, TASK.model_name) == ("captioning", "Captioner")
