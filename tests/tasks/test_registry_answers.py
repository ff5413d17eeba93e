import io

import numpy as np
import pytest
from rich.console import Console

from kbert.tasks.registry import json_answer, show_answer

STRINGS = np.array([b"a", b"\xff", b""], object)


def test_scores_get_the_names_of_their_classes():
    row = {"label": b"a", "scores": np.array([0.5, 0.25]), "labels": STRINGS[:2]}
    assert json_answer(row) == {"label": "a", "scores": {"a": 0.5, "\ufffd": 0.25}}


def test_the_list_of_best_answers_loses_its_padding():
    row = {
        "answer": b"a",
        "nbest_answer": STRINGS,
        "nbest_score": np.array([0.5, 0.25, 0.0]),
        "nbest_start": np.array([1, 2, 0]),
        "nbest_end": np.array([2, 3, 0]),
    }
    first = {"answer": "a", "score": 0.5, "start": 1, "end": 2}
    second = {"answer": "\ufffd", "score": 0.25, "start": 2, "end": 3}
    assert json_answer(row) == {"answer": "a", "nbest": [first, second]}


def test_the_best_translations_become_a_list():
    row = {
        "nbest_score": np.array([-0.5, -1.0], "float32"),
        "nbest_translation": STRINGS[:2],
        "score": np.float32(-0.5),
        "translation": b"a",
        "truncated": np.bool_(False),
    }
    best = [{"translation": "a", "score": -0.5}, {"translation": "\ufffd", "score": -1.0}]
    expected = {"translation": "a", "score": -0.5, "nbest": best, "truncated": False}
    assert list(json_answer(row).items()) == list(expected.items())


def test_entities_and_answers_lose_their_padding():
    places = {key: np.array([1, 2, 0]) for key in ("start", "end", "start_byte", "end_byte")}
    scores = np.array([0.5, 0.25, 0.0])
    row = {"entity": STRINGS, "label": STRINGS, "score": scores, **places, "count": np.int32(1)}
    expected = {"entity": "a", "label": "a", "score": 0.5, **{key: 1 for key in places}}
    assert json_answer(row) == {"entities": [expected]}
    row = {"answers": STRINGS, "scores": scores, "starts": places["start"], "ends": places["end"]}
    found = json_answer({**row, "count": np.int32(0)})
    assert found == {"answers": []}


def test_words_for_masks_lose_their_padding():
    words = np.array([[b"a", b"\xff"], [b"", b""]], object)
    places = {key: np.array([1, 0]) for key in ("start", "end", "start_byte", "end_byte")}
    scores = np.array([[0.5, 0.25], [0.0, 0.0]])
    row = {"word": words, "score": scores, **places, "filled": b"x a", "count": np.int32(1)}
    best = [{"word": "a", "score": 0.5}, {"word": "\ufffd", "score": 0.25}]
    expected = {"filled": "x a", "masks": [{"words": best, **{key: 1 for key in places}}]}
    assert json_answer(row) == expected
    nothing = {**row, "word": words[:0], "score": scores[:0], "count": np.int32(0)}
    nothing |= {key: np.zeros(0, int) for key in places}
    assert json_answer(nothing) == {"filled": "x a", "masks": []}


def test_other_outputs_stay():
    assert json_answer({"score": np.float32(0.5), "truncated": np.bool_(True)}) == {
        "score": 0.5,
        "truncated": True,
    }


def test_what_has_no_places_is_not_shown():
    with pytest.raises(ValueError, match="`--show` must be left out for a model that finds"):
        show_answer(("a",), {"label": "x"}, Console(file=io.StringIO()))
