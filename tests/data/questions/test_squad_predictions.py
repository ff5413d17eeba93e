"""Prediction files. Expected values by hand."""

import json

import pytest

from kbert.data.questions.squad import write_predictions


def test_a_file_is_what_the_official_scripts_read(tmp_path):
    predictions = {"q2": "Ada Möller", "q1": "", "q3": 'the "lamp"\n🐸'}
    path = write_predictions(tmp_path / "new" / "predictions.json", predictions)
    assert path == tmp_path / "new" / "predictions.json"
    assert json.loads(path.read_bytes()) == predictions
    assert path.read_bytes().isascii()
    assert list(json.loads(path.read_bytes())) == ["q2", "q1", "q3"]
    assert write_predictions(path, {"q": "x"}) == path
    assert json.loads(path.read_bytes()) == {"q": "x"}
    assert [file.name for file in path.parent.iterdir()] == ["predictions.json"]


def test_an_answer_that_utf8_cannot_write(tmp_path):
    path = write_predictions(tmp_path / "p.json", {"q": "x\udce9"})
    assert json.loads(path.read_bytes()) == {"q": "x\udce9"}


@pytest.mark.parametrize(
    "predictions, message",
    [
        ({}, r"`predictions` must hold an answer\. Received: none"),
        ({"q": None}, r"`predictions` must be \{id: answer\}, both of them strings.*'q': None"),
        ({7: "x"}, r"both of them strings\. Received: 7: 'x'"),
    ],
)
def test_what_cannot_be_written(tmp_path, predictions, message):
    with pytest.raises(ValueError, match=message):
        write_predictions(tmp_path / "p.json", predictions)
    assert not list(tmp_path.iterdir())
