"""Multiple-choice examples. Rows were written for these tests; expected values by hand."""

import csv
import io
import json

import pytest

from kbert.data.classification.multiple_choice import check_choice_columns, read_choice_examples

# The header of the official train.csv and val.csv; the first column has no name.
HEADER = (
    ",video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label\n"
)
ROWS = (
    '0,k_1,11,"A girl lifts a cup, slowly. She","A girl lifts a cup, slowly.",She,gold,'
    'drinks.,"says ""no"".",flies away.,melts.,0\n'
    "1,k_2,12,A dog sits. The man,A dog sits.,The man,gen,barks.,eats.,throws a ball.,rains.,2\n"
)


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def test_swag(tmp_path):
    examples = read_choice_examples(write(tmp_path / "val.csv", HEADER + ROWS))
    assert examples.contexts == ["A girl lifts a cup, slowly.", "A dog sits."]
    assert examples.choices[0] == ["She drinks.", 'She says "no".', "She flies away.", "She melts."]
    assert examples.choices[1][2] == "The man throws a ball."
    assert examples.labels == [0, 2]
    assert examples.ids == ["0", "1"]
    assert examples.lines == [2, 3]
    assert (len(examples), examples.num_choices) == (2, 4)


def test_the_test_file_has_no_labels(tmp_path):
    header = HEADER.replace(",label", "")
    row = "0,k,11,A. She,A.,She,gen,a,b,c,d\n"
    path = write(tmp_path / "test.csv", header + row)
    assert read_choice_examples(path).labels is None
    with pytest.raises(ValueError, match=r"test\.csv: the examples must have labels"):
        read_choice_examples(path, labeled=True)


def test_json_lines(tmp_path):
    path = write(
        tmp_path / "d.jsonl",
        '{"context": "It rains.", "choices": ["wet", "dry"], "label": 0, "id": "a"}\n'
        '{"context": "It snows.", "choices": ["hot", "cold"], "label": 1, "id": "b"}\n',
    )
    examples = read_choice_examples(path)
    assert examples.contexts == ["It rains.", "It snows."]
    assert examples.choices == [["wet", "dry"], ["hot", "cold"]]
    assert (examples.labels, examples.ids) == ([0, 1], ["a", "b"])
    assert read_choice_examples(path, labeled=False).labels is None


def test_swag_as_json_lines(tmp_path):
    columns = HEADER.strip().split(",")
    rows = csv.DictReader(io.StringIO(HEADER + ROWS))
    text = "".join(json.dumps({name: row[name] for name in columns}) + "\n" for row in rows)
    path = write(tmp_path / "d.jsonl", text)
    check_choice_columns(path)
    found = read_choice_examples(path)
    expected = read_choice_examples(write(tmp_path / "val.csv", HEADER + ROWS))
    assert (found.contexts, found.choices, found.labels) == (
        *(expected.contexts, expected.choices), expected.labels
    )


@pytest.mark.parametrize(
    "row, message",
    [
        ('"choices": ["a"], "label": 0', r"line 2, column `choices`: .* list of two strings"),
        ('"choices": "ab", "label": 0', r"line 2, column `choices`: .*Received: 'ab'"),
        ('"choices": ["a", "b", "c"], "label": 0', r"line 2.* must have 2 choices.*Received: 3"),
        ('"choices": ["a", "b"], "label": 2', r"line 2, column `label`: .*0\.\.1\. Received: 2"),
        ('"choices": ["a", "b"], "label": -1', r"line 2, column `label`: .*Received: -1"),
        ('"choices": ["a", "b"], "label": true', r"line 2, column `label`: .*Received: True"),
        ('"choices": ["a", "b"]', r"line 2, column `label`: .*Received: None"),
    ],
)
def test_json_errors(tmp_path, row, message):
    first = '{"context": "x", "choices": ["a", "b"], "label": 1}\n'
    path = write(tmp_path / "d.jsonl", first + '{"context": "y", ' + row + "}\n")
    with pytest.raises(ValueError, match=message):
        read_choice_examples(path)


def test_csv_errors(tmp_path):
    path = write(tmp_path / "d.csv", HEADER + ROWS.replace(",2\n", ",4\n"))
    with pytest.raises(ValueError, match=r"d\.csv, line 3, column `label`.*0\.\.3\. Received: '4'"):
        read_choice_examples(path)
    path = write(tmp_path / "d.csv", "sent1,sent2\nA,B\n")
    with pytest.raises(ValueError, match="a column `ending0`. Received: columns `sent1`, `sent2`"):
        read_choice_examples(path)
    path = write(tmp_path / "d.csv", HEADER + "1,2\n")
    with pytest.raises(ValueError, match=r"d\.csv, line 2: each row must have 12 fields"):
        read_choice_examples(path)


def test_a_missing_id_is_an_error(tmp_path):
    row = '{"context": "x", "choices": ["a", "b"], "label": 1'
    path = write(tmp_path / "d.jsonl", row + ', "id": 1}\n' + row + "}\n")
    with pytest.raises(ValueError, match=r"line 2, column `id`: the id must be .*nothing"):
        read_choice_examples(path)
