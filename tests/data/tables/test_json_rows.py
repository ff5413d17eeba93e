"""Objects of JSON and JSON Lines with their lines. Expected values by hand."""

import pytest

from kbert.data.tables.json_rows import json_rows, json_value


def test_json_lines_skip_blank_lines():
    rows, lines = json_rows("f.jsonl", '{"a": 1}\n\n{"a": 2}\n', one_a_line=True)
    assert rows == [{"a": 1}, {"a": 2}]
    assert lines == [1, 3]


def test_objects_by_id_get_the_id_and_the_line_of_their_key():
    text = '{\n "7": {"a": "x"},\n "8":\n   {"a": "y", "id": "own"}\n}\n'
    rows, lines = json_rows("f.json", text, one_a_line=False)
    assert rows == [{"id": "7", "a": "x"}, {"id": "own", "a": "y"}]
    assert lines == [2, 3]


def test_a_list_of_objects():
    rows, lines = json_rows("f.json", '[{"a": 1},\n\n{"a": [2, "}"]}]', one_a_line=False)
    assert rows == [{"a": 1}, {"a": [2, "}"]}]
    assert lines == [1, 3]


@pytest.mark.parametrize(
    "text, one_a_line, message",
    [
        ('{"a": 1}\n[1, 2]\n', True, r"f, line 2: each example must be a JSON object.*\[1, 2\]"),
        ('{"a": 1}\n{"a": \n', True, r"f, line 2: each line must be a JSON object"),
        ('[{"a": 1},\n 5]', False, r"f, line 2: each example must be a JSON object.*Received: 5"),
        ('{"1": {"a": 1},\n"2": {"a" 2}}', False, r"f, line 2: the file must be JSON"),
        ('[{"a": 1}', False, r"f, line 1: the file must be JSON.*missing"),
        ('[{"a": 1},', False, r"f, line 1: the file must be JSON"),
        ('[{"a": 1},\n]', False, r"f, line 1: the file must be JSON.*comma behind the last"),
        ('[{"a": 1}]\n[{"a": 2}]', False, r"f, line 2: the file must hold one JSON value"),
        ('{"1": {"a": 1}} x', False, r"f, line 1: the file must hold one JSON value.*: x"),
        ('"text"', False, r"f, line 1: the file must be a JSON object or list"),
        ("[]", False, r"f: the file must hold examples\. Received: no object"),
        (
            '{"1": {},\n"1": {}}',
            False,
            r"f, line 2: each id must occur once\. Received: '1', which line 1 has too",
        ),
    ],
)
def test_errors_name_the_line(text, one_a_line, message):
    with pytest.raises(ValueError, match=message):
        json_rows("f", text, one_a_line=one_a_line)


def test_one_value():
    assert json_value("a.json", ' {"a": [1]}\n', "questions") == {"a": [1]}
    pairs = json_value("a.json", '{"a": 1, "a": 2}', "answers", object_pairs_hook=list)
    assert pairs == [("a", 1), ("a", 2)]
    with pytest.raises(ValueError, match="a.json: the file must hold answers. Received: an empty"):
        json_value("a.json", " \n", "answers")
    with pytest.raises(ValueError, match="a.json, line 2: the file must be JSON. Received: .* 2"):
        json_value("a.json", "[1,\n ]", "answers")
