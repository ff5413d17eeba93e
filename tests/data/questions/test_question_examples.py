"""The form of questions, and answers out of JSON values. Expected values by hand."""

import numpy as np
import pytest

from kbert.data.questions.question_examples import (
    Answer,
    QuestionExamples,
    answers_of,
    required_answers,
)

CONTEXT = "Ada lit the lamp."


def examples(ids=("a", "b", "c"), **columns):
    count = len(ids)
    return QuestionExamples(
        **{
            "ids": list(ids),
            "questions": [f"{id}?" for id in ids],
            "contexts": [CONTEXT] * count,
            "answers": [[Answer("Ada", 0)] for _ in ids],
            "titles": [f"title {id}" for id in ids],
            "source": "f.json",
            "paths": [f"line {i + 1}" for i in range(count)],
            **columns,
        }
    )


def test_texts_of_the_answers():
    answers = [[Answer("Ada", 0), Answer("the lamp", 8)], [], [Answer("lamp", 12)]]
    found = examples(answers=answers).answer_texts
    assert found == {"a": ["Ada", "the lamp"], "b": [], "c": ["lamp"]}


def test_select_and_head():
    every = examples(labeled=False)
    chosen = every.select(np.array([2, 0]))
    assert chosen.ids == ["c", "a"]
    assert chosen.questions == ["c?", "a?"]
    assert chosen.titles == ["title c", "title a"]
    assert chosen.paths == ["line 3", "line 1"]
    assert (chosen.source, chosen.labeled, len(chosen)) == ("f.json", False, 2)
    assert every.head(2).ids == ["a", "b"]
    assert every.head(9).ids == every.ids
    with pytest.raises(ValueError, match=r"`count` must be at least 1\. Received: count=0"):
        every.head(0)
    with pytest.raises(ValueError, match="`indices` must be in .0, 3.. Received: 3"):
        every.select([3])


def test_columns_of_unequal_length():
    with pytest.raises(ValueError, match=r"`titles` must be as long as `ids`, 3\. .*: 1 items"):
        examples(titles=["x"])


def test_ids_are_different():
    message = r"f\.json, line 3: each id must occur once\. Received: 'a', which line 1 has too"
    with pytest.raises(ValueError, match=message):
        examples(ids=("a", "b", "a"))


def test_required_answers():
    assert required_answers(examples())[0] == [Answer("Ada", 0)]
    with pytest.raises(ValueError, match=r"f\.json: the questions must have answers.*labeled=Fal"):
        required_answers(examples(labeled=False))


@pytest.mark.parametrize(
    "value, expected",
    [
        ([], []),
        ([{"text": "lamp", "answer_start": 12}], [("lamp", 12)]),
        ([{"text": "lamp", "start": 12}, {"text": "Ada", "start": 0}], [("lamp", 12), ("Ada", 0)]),
        ({"text": ["lamp", "Ada"], "answer_start": [12, 0]}, [("lamp", 12), ("Ada", 0)]),
        ({"text": [], "answer_start": []}, []),
        # Misaligned, yet begun within the context: that is for `align_answers` to tell.
        ([{"text": "lamp", "answer_start": 16}], [("lamp", 16)]),
    ],
)
def test_answers(value, expected):
    assert answers_of(value, "f") == expected


@pytest.mark.parametrize(
    "value, message",
    [
        (None, r"f: `answers` must be a list of objects .*Received: nothing"),
        ("lamp", r"f: `answers` must be a list of objects .*Received: 'lamp'"),
        ({"text": "lamp"}, r"f: `answers` must be a list .* one length\. Received: \{'text'"),
        ({"text": ["a"], "answer_start": []}, r"the lists `text` and `answer_start` of one length"),
        (["lamp"], r"f, answers\[0\]: the answer must be an object .*Received: 'lamp'"),
        ([{"answer_start": 1}], r"f, answers\[0\]: `text` must be a string .*Received: nothing"),
        ([{"text": "", "answer_start": 1}], r"`text` must be a string that is not empty.*''"),
        ([{"text": 5, "answer_start": 1}], r"`text` must be a string .*Received: 5"),
        ([{"text": "a"}], r"`answer_start` must be an integer, counted in code points.*nothing"),
        ([{"text": "a", "answer_start": "1"}], r"`answer_start` must be an integer.*'1'"),
        ([{"text": "a", "answer_start": 1.0}], r"`answer_start` must be an integer.*1\.0"),
        ([{"text": "a", "answer_start": True}], r"`answer_start` must be an integer.*True"),
        (
            [{"text": "Ada", "start": 0}, {"text": "\ud800", "answer_start": 1}],
            r"f, answers\[1\], `text`: the value must be text .* lone surrogate '\\ud800'",
        ),
    ],
)
def test_wrong_answers(value, message):
    with pytest.raises(ValueError, match=message):
        answers_of(value, "f")
