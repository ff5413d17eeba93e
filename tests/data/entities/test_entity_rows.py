"""Texts with entities. Rows were written for these tests; expected values by hand."""

import gzip
import json

import pytest

from kbert.data.entities.entity_rows import Entity, read_entity_rows

TEXT = "🐸 Ada Möller left Orm."


def write(path, rows):
    content = "".join(json.dumps(row) + "\n" for row in rows).encode("utf-8")
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def entity(start, end, label="PER"):
    return {"start": start, "end": end, "label": label}


def test_json_lines(tmp_path):
    rows = [
        {"text": TEXT, "entities": [entity(18, 21, "LOC"), entity(2, 12)], "id": 4},
        {"text": "", "entities": [], "id": "b"},
    ]
    for name in ("d.jsonl", "d.jsonl.gz"):
        examples = read_entity_rows(write(tmp_path / name, rows))
        assert examples.texts == [TEXT, ""]
        assert examples.entities == [[Entity(2, 12, "PER"), Entity(18, 21, "LOC")], []]
        assert [TEXT[e.start : e.end] for e in examples.entities[0]] == ["Ada Möller", "Orm"]
        assert (examples.ids, examples.lines) == (["4", "b"], [1, 2])
        assert examples.labels == ["LOC", "PER"]
    assert examples.select([1]).ids == ["b"]
    assert examples.head(1).texts == [TEXT]
    assert len(examples.head(7)) == 2
    with pytest.raises(ValueError, match=r"`count` must be at least 1\. Received: count=-1"):
        examples.head(-1)


def test_without_annotation_and_ids(tmp_path):
    path = write(tmp_path / "d.jsonl", [{"text": "a"}, {"text": "b"}])
    examples = read_entity_rows(path, labeled=False)
    assert (examples.texts, examples.entities, examples.ids) == (["a", "b"], None, None)
    assert examples.labels == []
    assert examples.select([0]).entities is None
    with pytest.raises(ValueError, match=r"d\.jsonl, line 1: .* have a column `entities`"):
        read_entity_rows(path)


def test_neighbours_do_not_overlap(tmp_path):
    path = write(tmp_path / "d.json", [])
    path.write_text(json.dumps([{"text": "ab", "entities": [entity(1, 2), entity(0, 1)]}]))
    assert read_entity_rows(path).entities == [[(0, 1, "PER"), (1, 2, "PER")]]


@pytest.mark.parametrize(
    "entities, message",
    [
        (None, r"d\.jsonl, line 2: `entities` must be a list of objects .*Received: nothing"),
        ({}, r"line 2: `entities` must be a list of objects .*Received: \{\}"),
        ([[0, 3, "PER"]], r"line 2, entities\[0\]: the entity must be an object .*\[0, 3, 'PER'\]"),
        ([{"end": 1, "label": "X"}], r"`start` must be an integer, counted in code points.*nothi"),
        ([entity("0", 3)], r"line 2, entities\[0\]: `start` must be an integer.*'0'"),
        ([entity(0, 3.0)], r"line 2, entities\[0\]: `end` must be an integer.*3\.0"),
        ([entity(False, 3)], r"line 2, entities\[0\]: `start` must be an integer.*False"),
        ([entity(2, 5), entity(-1, 3)], r"line 2, entities\[1\]: `start` and `end` .*start=-1"),
        ([entity(3, 3)], r"must enclose at least one of the text's 22 code points.*start=3, end=3"),
        ([entity(5, 3)], r"must enclose at least one .*start=5, end=3"),
        ([entity(2, 23)], r"must enclose at least one .*start=2, end=23"),
        ([entity(5, 6)], r"line 2, entities\[0\]: the entity must be more than white space.*' '"),
        ([entity(2, 5, "")], r"line 2, entities\[0\]: `label` must be a string .*Received: ''"),
        ([entity(2, 5, None)], r"`label` must be a string that is not empty\. Received: nothing"),
        (
            [entity(6, 12), entity(2, 7, "LOC")],
            r"line 2: `entities` must not overlap\. Received: \(2, 7, 'LOC'\) and \(6, 12, 'PER'\)",
        ),
        ([entity(2, 5), entity(2, 5)], r"line 2: `entities` must not overlap"),
    ],
)
def test_wrong_entities_name_the_line(tmp_path, entities, message):
    rows = [{"text": "x", "entities": []}, {"text": TEXT, "entities": entities}]
    with pytest.raises(ValueError, match=message):
        read_entity_rows(write(tmp_path / "d.jsonl", rows))


def test_wrong_rows(tmp_path):
    path = write(tmp_path / "d.jsonl", [{"text": 3, "entities": []}])
    with pytest.raises(ValueError, match=r"line 1, column `text`: the value must be a string.*3"):
        read_entity_rows(path)
    path = write(tmp_path / "d.jsonl", [{"text": "a", "entities": [], "id": "x"}] * 2)
    message = r"d\.jsonl, line 2: each id must occur once\. Received: 'x', which line 1 has too"
    with pytest.raises(ValueError, match=message):
        read_entity_rows(path)
    path = tmp_path / "d.tsv"
    path.write_text("text\tentities\na\t[]\n")
    message = r"d\.tsv: annotated texts must be JSON Lines or JSON\. Received: .*`text`, `entities`"
    with pytest.raises(ValueError, match=message):
        read_entity_rows(path)
    path = tmp_path / "d.jsonl"
    path.write_text("")
    with pytest.raises(ValueError, match=r"d\.jsonl: the file must hold examples.*an empty file"):
        read_entity_rows(path)


def test_surrogates(tmp_path):
    path = write(tmp_path / "d.jsonl", [{"text": "\ud800da", "entities": [entity(0, 3)]}])
    with pytest.raises(ValueError, match=r"line 1, column `text`: .* lone surrogate '\\ud800'"):
        read_entity_rows(path)
