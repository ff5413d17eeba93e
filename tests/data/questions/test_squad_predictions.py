"""Prediction files. Expected values by hand."""

import gzip
import json

import pytest

from kbert.data.questions.squad_predictions import read_predictions, write_predictions


def test_a_file_is_what_the_official_scripts_read(tmp_path):
    predictions = {"q2": "Ada Möller", "q1": "", "q3": 'the "lamp"\n🐸'}
    path = write_predictions(tmp_path / "new" / "predictions.json", predictions)
    assert path == tmp_path / "new" / "predictions.json"
    assert json.loads(path.read_bytes()) == predictions
    assert path.read_bytes().isascii()
    assert list(read_predictions(path)) == ["q2", "q1", "q3"]
    assert read_predictions(path) == predictions
    assert write_predictions(path, {"q": "x"}) == path
    assert read_predictions(path) == {"q": "x"}
    assert [file.name for file in path.parent.iterdir()] == ["predictions.json"]


def test_an_answer_that_utf8_cannot_write(tmp_path):
    path = write_predictions(tmp_path / "p.json", {"q": "x\udce9"})
    assert read_predictions(path) == {"q": "x\udce9"}


def test_gzip(tmp_path):
    path = tmp_path / "p.json.gz"
    path.write_bytes(gzip.compress(b'{"q": "x"}'))
    assert read_predictions(path) == {"q": "x"}


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


@pytest.mark.parametrize(
    "content, message",
    [
        ("", r"p\.json: the file must hold predictions\. Received: an empty file"),
        ('{\n"a": x}', r"p\.json, line 2: the file must be JSON\. Received: .* at column 6"),
        ("[" * 100_000, r"p\.json: the file must be JSON\. Received: "),
        ('["a"]', r"p\.json: the file must be an object of ids and answers\. Received: list"),
        ("{}", r"p\.json: the file must be an object .* Received: an empty object"),
        ('{"a": "x", "a": "x"}', r"p\.json: each id must occur once\. Received: 'a' twice"),
        ('{"a": 3}', r"p\.json, id 'a': the answer must be a string\. Received: 3"),
        ('{"a": {"text": "x"}}', r"p\.json, id 'a': the answer must be .*Received: an object"),
    ],
)
def test_what_cannot_be_read(tmp_path, content, message):
    path = tmp_path / "p.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        read_predictions(path)


def test_the_published_predictions(shared_data):
    path = shared_data / "squad" / "dev-v1.1.predictions-bert-ensemble.json"
    assert len(read_predictions(path)) == 10_570
