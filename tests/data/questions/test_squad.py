"""Files in SQuAD's layout. Fixtures of our own; expected values by hand.

The counts of the public files are those of their distributors.
"""

import gzip
import json
from pathlib import Path

import pytest

from kbert.data.questions.answer_alignment import align_answers
from kbert.data.questions.squad import Answer, read_questions, read_squad

FIXTURES = Path(__file__).parents[1] / "fixtures" / "squad"


def write(path, value):
    if not isinstance(value, str | bytes):
        value = json.dumps(value)
    content = value.encode("utf-8") if isinstance(value, str) else value
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def article(**changes):
    """A file of one question, with changed members of that question."""
    question = {
        "id": "q",
        "question": "Who?",
        "answers": [{"text": "Ada", "answer_start": 0}],
        **changes,
    }
    entry = {name: value for name, value in question.items() if value is not ...}
    return {"data": [{"title": "T", "paragraphs": [{"context": "Ada sang.", "qas": [entry]}]}]}


def test_version_1():
    examples = read_squad(FIXTURES / "train-v1.1.json")
    assert examples.ids == ["f1", "f2", "f3", "g1", "g2"]
    assert examples.questions[1] == "Who lit the lamp?"
    assert examples.contexts[0] is examples.contexts[1]
    assert examples.answers[1] == [Answer("Ada Möller", 62)]
    assert examples.titles == ["Farrow_Point"] * 3 + ["Glass_frogs"] * 2
    assert examples.paths[2] == "data[0].paragraphs[1].qas[0]"
    assert examples.source.endswith("train-v1.1.json")
    assert examples.labeled
    for context, answers in zip(examples.contexts, examples.answers):
        for text, start in answers:
            assert context[start : start + len(text)] == text


def test_version_2():
    examples = read_squad(FIXTURES / "train-v2.0.json")
    assert examples.ids == ["f1", "f4"]
    # The plausible answer of the second is none.
    assert examples.answers == [[Answer("1843", 44)], []]
    assert read_squad(FIXTURES / "dev-v2.0.json").answers[0] == [
        Answer("two", 17),
        Answer("two piers", 17),
        Answer("two", 17),
    ]


def test_answers_need_not_be_read(tmp_path):
    examples = read_squad(FIXTURES / "train-v1.1.json", labeled=False)
    assert examples.answers == [[]] * 5
    assert not examples.labeled
    path = write(tmp_path / "d.json", article(answers=...))
    assert read_squad(path, labeled=False).ids == ["q"]
    with pytest.raises(ValueError, match=r"qas\[0\]: `answers` must be a list .*nothing"):
        read_squad(path)


def test_gzip_byte_order_mark_and_crlf(tmp_path):
    content = (FIXTURES / "dev-v1.1.json").read_text(encoding="utf-8").replace("\n", "\r\n")
    expected = read_squad(FIXTURES / "dev-v1.1.json")
    for name in ("d.json", "d.json.gz"):
        examples = read_squad(write(tmp_path / name, b"\xef\xbb\xbf" + content.encode()))
        assert examples.ids == expected.ids
        assert examples.answers == expected.answers


def test_title_and_is_impossible_may_be_absent_and_ids_may_be_numbers(tmp_path):
    value = article(id=7, answers=[])
    del value["data"][0]["title"]
    examples = read_squad(write(tmp_path / "d.json", value))
    assert (examples.titles, examples.ids, examples.answers) == ([""], ["7"], [[]])
    value["data"][0]["title"] = None
    assert read_squad(write(tmp_path / "d.json", value)).titles == [""]
    value = article(is_impossible=True, answers=...)
    assert read_squad(write(tmp_path / "d.json", value)).answers == [[]]


def test_empty_texts_stay(tmp_path):
    value = article(question="", answers=[])
    value["data"][0]["paragraphs"][0]["context"] = ""
    examples = read_squad(write(tmp_path / "d.json", value))
    assert (examples.questions, examples.contexts) == ([""], [""])


Q = r"d\.json, data\[0\]\.paragraphs\[0\]\.qas\[0\]"


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"id": ...}, Q + r": `id` must be a string\. Received: nothing"),
        ({"id": True}, Q + r": `id` must be a string\. Received: True"),
        ({"question": ["Who?"]}, Q + r": `question` must be a string\. Received: \['Who\?'\]"),
        ({"answers": {}}, Q + r": `answers` must be a list of objects.* Received: \{\}"),
        (
            {"answers": [{"text": "Ada", "answer_start": 1.5}]},
            Q + r", answers\[0\]: `answer_start` must be an integer.* Received: 1\.5",
        ),
        ({"is_impossible": "yes"}, Q + r": `is_impossible` must be true or false.*'yes'"),
        (
            {"is_impossible": True},
            Q + r": `answers` must be empty where `is_impossible` is true\. Received: \[\{'text'",
        ),
        (
            {"is_impossible": False, "answers": []},
            Q + r": `answers` must hold an answer where `is_impossible` is false\. Received: \[\]",
        ),
        ({"question": "\ud83d?"}, Q + r", `question`: the value must be text.*'\\ud83d'"),
    ],
)
def test_a_wrong_question_names_its_place(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_squad(write(tmp_path / "d.json", article(**changes)))


@pytest.mark.parametrize(
    "content, message",
    [
        ("", r"d\.json: the file must hold questions\. Received: an empty file"),
        (" \n", r"d\.json: the file must hold questions\. Received: an empty file"),
        ('{\n"data": [\n}', r"d\.json, line 3: the file must be JSON\. Received: .* at column 1"),
        ('{"data": []} x', r"d\.json, line 1: the file must be JSON\. Received: Extra data"),
        ("[" * 100_000, r"d\.json: the file must be JSON\. Received: "),
        ('{"n": ' + "9" * 5000 + "}", r"d\.json: the file must be JSON\. Received: "),
        ("[]", r"d\.json: the value must be an object with `data`\. Received: \[\]"),
        ("{}", r"d\.json: `data` must be a list\. Received: nothing"),
        ('{"data": {"a": 1}}', r"d\.json: `data` must be a list\. Received: \{'a': 1\}"),
        ('{"data": []}', r"d\.json: the file must hold questions\. Received: none under `data`"),
        ('{"data": ["x"]}', r"d\.json, data\[0\]: the value must be an object with `paragraphs`"),
        ('{"data": [{}]}', r"d\.json, data\[0\]: `paragraphs` must be a list\. Received: nothing"),
        (
            '{"data": [{"title": 3, "paragraphs": []}]}',
            r"d\.json, data\[0\]: `title` must be a string\. Received: 3",
        ),
        (
            '{"data": [{"paragraphs": [{"context": 1, "qas": []}]}]}',
            r"d\.json, data\[0\]\.paragraphs\[0\]: `context` must be a string\. Received: 1",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "c"}]}]}',
            r"d\.json, data\[0\]\.paragraphs\[0\]: `qas` must be a list\. Received: nothing",
        ),
        (
            '{"data": [{"paragraphs": [{"context": "c", "qas": [null]}]}]}',
            Q + r": the value must be an object with `id`\. Received: nothing",
        ),
        (b'{"data": "caf\xe9"}', r"d\.json, line 1: the file must be UTF-8\. Received: byte 0xe9"),
        ('{"data": []}'.encode("utf-16"), r"d\.json, line 1: .*It looks like UTF-16"),
    ],
)
def test_a_file_of_another_layout(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_squad(write(tmp_path / "d.json", content))


def test_an_id_that_occurs_twice_names_both_places(tmp_path):
    value = article()
    value["data"][0]["paragraphs"] *= 2
    message = (
        r"d\.json, data\[0\]\.paragraphs\[1\]\.qas\[0\]: each id must occur once\. Received: 'q', "
        r"which data\[0\]\.paragraphs\[0\]\.qas\[0\] has too"
    )
    with pytest.raises(ValueError, match=message):
        read_squad(write(tmp_path / "d.json", value))


def test_lone_surrogates(tmp_path):
    value = article(answers=[{"text": "a s", "answer_start": 2}])
    value["data"][0]["paragraphs"][0]["context"] = "\ud800da sang."
    path = write(tmp_path / "d.json", value)
    with pytest.raises(ValueError, match=r"paragraphs\[0\], `context`: .* lone surrogate"):
        read_squad(path)


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_squad(tmp_path / "none.json")


def test_read_questions_looks_at_the_file(tmp_path):
    assert read_questions(FIXTURES / "train-v1.1.json").ids[0] == "f1"
    assert read_questions(write(tmp_path / "d.json.gz", article())).ids == ["q"]
    row = {"id": "r", "question": "Who?", "context": "Ada.", "answer": "Ada", "answer_start": 0}
    for name, value in (("d.jsonl", json.dumps(row)), ("d.json", [row])):
        examples = read_questions(write(tmp_path / name, value))
        assert (examples.ids, examples.answers) == (["r"], [[Answer("Ada", 0)]])
    assert read_questions(tmp_path / "d.json", labeled=False).answers == [[]]


def test_the_ending_tells_the_format(tmp_path):
    path = write(tmp_path / "d.txt", article())
    with pytest.raises(ValueError, match=r"`path` must end in .tsv, .csv, .*d\.txt"):
        read_questions(path)


@pytest.mark.parametrize(
    "name, questions, without",
    [
        ("squad/dev-v1.1.json.gz", 10_570, 0),
        ("squad/dev-v2.0.json.gz", 11_873, 5_945),
        pytest.param("squad/train-v1.1.json.gz", 87_599, 0, marks=pytest.mark.slow),
        ("biomed/covid-qa.json", 1_380, 0),
    ],
)
def test_public_files(shared_data, name, questions, without):
    examples = read_questions(shared_data / name)
    assert len(examples) == questions
    assert sum(not answers for answers in examples.answers) == without
    aligned, report = align_answers(examples)
    assert (report.misaligned, len(aligned)) == (0, questions)


def test_titles_and_contexts_of_public_files(shared_data):
    # Counts of the official file.
    examples = read_squad(shared_data / "squad" / "dev-v1.1.json.gz")
    assert len(set(examples.titles)) == 48
    assert len(set(examples.contexts)) == 2_067
    covid = read_squad(shared_data / "biomed" / "covid-qa.json")
    assert len(set(covid.contexts)) == 98
