"""Objects of JSON files with their lines. Expected values by hand."""

import pytest

from kbert.data.tables.rows import json_value, text_rows


def test_objects_by_id_get_the_id_and_the_line_of_their_key():
    text = '{\n "7": {"a": "x"},\n "8":\n   {"a": "y", "id": "own"}\n}\n'
    assert list(text_rows("f.json", text.splitlines(keepends=True), "json")) == [
        (2, {"id": "7", "a": "x"}),
        (3, {"id": "own", "a": "y"}),
    ]


def test_a_list_of_objects():
    lines = ['[{"a": 1},\n', "\n", '{"a": [2, "}"]}]']
    found = list(text_rows("f.json", lines, "json"))
    assert found == [(1, {"a": 1}), (3, {"a": [2, "}"]})]


@pytest.mark.parametrize(
    "text, message",
    [
        ('[{"a": 1},\n 5]', r"f, line 2: each example must be a JSON object.*Received: 5"),
        ('{"1": {"a": 1},\n"2": {"a" 2}}', r"f, line 2: the file must be JSON"),
        ('[{"a": 1}', r"f, line 1: the file must be JSON.*missing"),
        ('[{"a": 1},', r"f, line 1: the file must be JSON"),
        ('[{"a": 1},\n]', r"f, line 1: the file must be JSON.*comma behind the last"),
        ('[{"a": 1}]\n[{"a": 2}]', r"f, line 2: the file must hold one JSON value"),
        ('{"1": {"a": 1}} x', r"f, line 1: the file must hold one JSON value.*: x"),
        ('"text"', r"f, line 1: the file must be a JSON object or list"),
        ("[" * 100_000, r"f, line 1: the file must be JSON. Received: an entry that"),
        (" ", r"f: the file must hold examples\. Received: an empty file"),
        ("[]", r"f: the file must hold examples\. Received: no object"),
        (
            '{"1": {},\n"1": {}}',
            r"f, line 2: each id must occur once\. Received: '1', which line 1 has too",
        ),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(ValueError, match=message):
        list(text_rows("f", [text], "json"))


def test_one_value():
    assert json_value("a.json", ' {"a": [1]}\n', "questions") == {"a": [1]}
    with pytest.raises(ValueError, match="a.json: the file must hold answers. Received: an empty"):
        json_value("a.json", " \n", "answers")
    with pytest.raises(ValueError, match="a.json, line 2: the file must be JSON. Received: .* 2"):
        json_value("a.json", "[1,\n ]", "answers")
