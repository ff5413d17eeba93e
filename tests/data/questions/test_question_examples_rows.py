"""Questions in tables. Rows were written for these tests; expected values by hand."""

import json

import pytest

from kbert.data.questions.question_examples import read_question_rows

CONTEXT = "Ada lit the lamp, then slept."


def write(path, content):
    if not isinstance(content, str):
        content = "".join(json.dumps(row) + "\n" for row in content)
    path.write_text(content, encoding="utf-8")
    return path


def row(**changes):
    every = {"question": "Who?", "context": CONTEXT, **changes}
    return {name: value for name, value in every.items() if value is not ...}


def test_json_lines(tmp_path):
    rows = [
        row(id="a", title="Ada", answers=[{"text": "Ada", "answer_start": 0}]),
        row(id=2, answers=[{"text": "lamp", "start": 12}, {"text": "the lamp", "start": 8}]),
        row(id="c", answers={"text": ["slept"], "answer_start": [23]}),
        row(id="d", title=None, answers=[]),
    ]
    examples = read_question_rows(write(tmp_path / "d.jsonl", rows))
    assert examples.ids == ["a", "2", "c", "d"]
    assert examples.questions == ["Who?"] * 4
    assert examples.contexts == [CONTEXT] * 4
    assert examples.titles == ["Ada", "", "", ""]
    assert examples.answers == [
        [("Ada", 0)],
        [("lamp", 12), ("the lamp", 8)],
        [("slept", 23)],
        [],
    ]
    assert examples.paths == ["line 1", "line 2", "line 3", "line 4"]


def test_rows_of_one_line_have_numbers(tmp_path):
    rows = [row(answers=[]), row(answers=[])]
    assert read_question_rows(write(tmp_path / "a.json", json.dumps(rows))).ids == ["1", "2"]
    lines = read_question_rows(write(tmp_path / "b.json", json.dumps(rows, indent=1))).ids
    assert lines == ["2", "7"]


def test_one_answer_a_row(tmp_path):
    rows = [
        row(answer="Ada", answer_start=0),
        row(answer=None, answer_start=None),
        row(answer="", answer_start=-1),
        row(answer="lamp", start=12, answer_start=12),
    ]
    path = write(tmp_path / "d.jsonl", rows)
    examples = read_question_rows(path)
    assert examples.answers == [[("Ada", 0)], [], [], [("lamp", 12)]]
    assert examples.ids == ["1", "2", "3", "4"]  # the lines, where the file has none
    examples = read_question_rows(path, labeled=False)
    assert (examples.answers, examples.labeled) == ([[]] * 4, False)


def test_csv_and_tsv(tmp_path):
    csv = (
        "id,question,context,answer,answer_start\n"
        f'a,Who?,"{CONTEXT}",Ada,0\n'
        '\nb,"Who ""then""?","Ada, not\nBo.",,\n'
    )
    examples = read_question_rows(write(tmp_path / "d.csv", csv))
    assert examples.ids == ["a", "b"]
    assert examples.questions[1] == 'Who "then"?'
    assert examples.contexts == [CONTEXT, "Ada, not\nBo."]
    assert examples.answers == [[("Ada", 0)], []]
    assert examples.paths == ["line 2", "line 4"]
    tsv = f"question\tcontext\tanswer\tstart\nWho?\t{CONTEXT}\tlamp\t 12 \n"
    assert read_question_rows(write(tmp_path / "d.tsv", tsv)).answers == [[("lamp", 12)]]


def test_answers_as_json_in_a_table(tmp_path):
    tsv = f'question\tcontext\tanswers\nWho?\t{CONTEXT}\t[{{"text": "Ada", "answer_start": 0}}]\n'
    path = write(tmp_path / "d.tsv", tsv)
    assert read_question_rows(path, quoting=False).answers == [[("Ada", 0)]]
    path = write(tmp_path / "d.tsv", f"question\tcontext\tanswers\nWho?\t{CONTEXT}\tAda\n")
    message = r"d\.tsv, line 2, column `answers`: the value must be a JSON list .*Received: 'Ada'"
    with pytest.raises(ValueError, match=message):
        read_question_rows(path)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"answer": "Ada"}, r"line 2, answers\[0\]: `answer_start` must be an integer.*nothing"),
        ({"answer": 4, "answer_start": 0}, r"line 2, answers\[0\]: `text` must be a string.*: 4"),
        ({"answer": "Ada", "answer_start": "x"}, r"`answer_start` must be an integer.*'x'"),
        ({"answer_start": 3}, r"line 2, column `answer`: the answer must be there.*starts at 3"),
        ({"id": "1", "answer": "Ada", "answer_start": 0}, r"line 2: each id must occur once"),
        ({"id": None}, r"line 2, column `id`: the id must be a string or .*nothing"),
        ({"question": ...}, r"line 2, column `question`: the value must be a string.*nothing"),
        ({"context": 3}, r"line 2, column `context`: the value must be a string. Received: 3"),
        ({"title": 3}, r"line 2, column `title`: the value must be a string\. Received: 3"),
        ({"question": "\ud800"}, r"line 2, column `question`: .* lone surrogate '\\ud800'"),
    ],
)
def test_a_wrong_row_names_its_line(tmp_path, changes, message):
    first = row(id="1", title="T", answer="Ada", answer_start=0)
    second = row(**{"id": "2", "answer": None, "answer_start": None, **changes})
    if changes == {"answer": "Ada"}:
        del second["answer_start"]
    path = write(tmp_path / "d.jsonl", [first, second])
    with pytest.raises(ValueError, match=message):
        read_question_rows(path)


def test_missing_columns(tmp_path):
    path = write(tmp_path / "d.jsonl", [row()])
    message = (
        r"d\.jsonl: the questions must have a column `answers`, or columns `answer` and "
        r"`answer_start`\. Received: columns `question`, `context`"
    )
    with pytest.raises(ValueError, match=message):
        read_question_rows(path)
    assert read_question_rows(path, labeled=False).ids == ["1"]
    path = write(tmp_path / "d.jsonl", [{"question": "Who?", "contxt": ""}])
    with pytest.raises(ValueError, match=r"a column `context`.* Did you mean `contxt`\?"):
        read_question_rows(path)
