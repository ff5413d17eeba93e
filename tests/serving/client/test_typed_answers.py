"""Outputs of each task as an object."""

import typing

import numpy as np

from kbert.serving.client.typed_answers import (
    Answer,
    AnyAnswer,
    Caption,
    Choice,
    Classification,
    Filling,
    Mask,
    Score,
    Span,
    Spans,
    Translation,
)
from kbert.tasks.registry import all_tasks, typed_answer


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


def test_a_score_and_a_choice():
    assert typed_answer({"score": np.float32(2.5)}) == Score(2.5)
    row = {"choice": np.int32(1), "score": np.float32(0.5), "scores": np.array([0.5, 0.5], "f")}
    assert typed_answer(row) == Choice(1, 0.5, [0.5, 0.5])


def test_an_answer_and_none():
    row = {
        "answer": b"Ann",
        "score": np.float32(0.5),
        "start": np.int32(3),
        "end": np.int32(6),
        "has_answer": np.bool_(True),
        "nbest_answer": texts("Ann", "Bob", ""),
        "nbest_score": np.array([0.5, 0.25, 0.0], np.float32),
        "nbest_start": np.array([3, 9, 0]),
        "nbest_end": np.array([6, 12, 0]),
    }
    ann = Span("Ann", 3, 6, 0.5)
    assert typed_answer(row) == Answer(ann, [ann, Span("Bob", 9, 12, 0.25)], True)
    found = typed_answer({**row, "has_answer": np.bool_(False), "null_score": np.float32(0.5)})
    assert isinstance(found, Answer) and found.best is None and found.null_score == 0.5


def test_entities():
    row = {
        "entity": texts("Ann", ""),
        "label": texts("PER", ""),
        "score": np.array([0.5, 0.0], np.float32),
        **{name: np.array([3, 0]) for name in ("start", "start_byte")},
        **{name: np.array([6, 0]) for name in ("end", "end_byte")},
        "count": np.int32(1),
    }
    assert typed_answer(row) == Spans([Span("Ann", 3, 6, 0.5, "PER")])


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


def test_a_caption_and_why_there_is_none():
    row = {
        "caption": "a größer dog".encode(),
        "score": np.float32(-0.5),
        "nbest_caption": texts("a größer dog", "a dog", ""),
        "nbest_score": np.array([-0.5, -1.0, -np.inf], np.float32),
        "problem": b"",
    }
    nbest = [("a größer dog", -0.5), ("a dog", -1.0)]  # the search found no third
    assert typed_answer(row) == Caption("a größer dog", -0.5, nbest)
    none = {"caption": b"", "score": np.float32(0), "nbest_caption": texts("")}
    none |= {"nbest_score": np.zeros(1, np.float32), "problem": b"it is broken"}
    assert typed_answer(none) == Caption("", 0.0, [("", 0.0)], "it is broken")


def test_blanks():
    row = {
        "filled": b"a cat",
        "word": np.array([[b"cat", b"dog"], [b"", b""]], object),
        "score": np.array([[0.5, 0.25], [0.0, 0.0]], np.float32),
        **{name: np.array([2, 0]) for name in ("start", "start_byte")},
        **{name: np.array([8, 0]) for name in ("end", "end_byte")},
        "count": np.int32(1),
    }
    assert typed_answer(row) == Filling("a cat", [Mask(2, 8, [("cat", 0.5), ("dog", 0.25)])])


def test_what_fits_no_class_is_a_dict():
    assert typed_answer({"y": np.array([1.0, 2.0])}) == {"y": [1.0, 2.0]}


def test_the_answers_of_all_tasks_are_there():
    found = {typing.get_type_hints(type(task).typed_answer)["return"] for task in all_tasks()}
    assert found == set(typing.get_args(AnyAnswer)) - {dict[str, typing.Any]}
