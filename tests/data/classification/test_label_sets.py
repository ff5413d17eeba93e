"""Examples with several labels: the forms in files, names and targets."""

import json

import pytest

from kbert.data.classification.label_sets import (
    check_label_set_columns,
    check_label_sets,
    label_set_names,
    label_set_targets,
    read_label_set_examples,
)

TSV = "text\tlabels\na\tjoy|love\nb\t\nc\tanger\nd\tlove | joy|\ne\tanger|anger\n"
CSV = "comment,toxic,insult,none\na,1,0,0\nb,1,1,0\nc,0,0.25,0\n"


def written(folder, name, content):
    (folder / name).write_text(content, encoding="utf-8")
    return folder / name


def rows_of(folder, *values):
    lines = [json.dumps({"text": "x", "labels": value}) + "\n" for value in values]
    return written(folder, "rows.jsonl", "".join(lines))


def test_a_column_with_a_separator(tmp_path):
    found = read_label_set_examples(written(tmp_path, "t.tsv", TSV), labeled=True)
    assert found.text_a == ["a", "b", "c", "d", "e"] and found.text_b is None
    assert found.labels == [["joy", "love"], [], ["anger"], ["love", "joy"], ["anger"]]
    assert label_set_names(found) == ["anger", "joy", "love"]
    expected = [[0, 1, 1], [0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 0, 0]]
    targets = label_set_targets(found, ["anger", "joy", "love"])
    assert targets.dtype == "float32" and targets.tolist() == expected
    assert found.select([1, 0]).labels == [[], ["joy", "love"]]


def test_another_separator_without_a_header(tmp_path):
    # GoEmotions: the text, numbers of its emotions, an id.
    path = written(tmp_path, "t.tsv", "a\t3,27\tx1\nb\t3\tx2\n")
    found = read_label_set_examples(path, 0, None, 1, separator=",")
    assert found.labels == [["3", "27"], ["3"]] and found.text_a == ["a", "b"]


def test_lists_of_json(tmp_path):
    found = read_label_set_examples(rows_of(tmp_path, ["a", "b"], [], [3, "a"], "a|c"))
    assert found.labels == [["a", "b"], [], ["3", "a"], ["a", "c"]]
    found = read_label_set_examples(rows_of(tmp_path, {"a": 0.5, "b": 1}, [], ["b"]))
    assert found.labels == [{"a": 0.5, "b": 1.0}, {}, {"b": 1.0}]
    assert label_set_targets(found, ["b", "a"]).tolist() == [[1, 0.5], [0, 0], [1, 0]]


def test_columns_of_0_and_1(tmp_path):
    path = written(tmp_path, "t.csv", CSV)
    for label in ("toxic, insult,none", ["toxic", "insult", "none"]):
        found = read_label_set_examples(path, "comment", label=label, labeled=True)
        assert label_set_names(found) == ["insult", "none", "toxic"]
        targets = label_set_targets(found, ["toxic", "insult", "none"])
        assert targets.tolist() == [[1, 0, 0], [1, 1, 0], [0, 0.25, 0]]
        check_label_set_columns(path, "comment", label=label)
    assert read_label_set_examples(path, "comment", label="toxic,").labels[2] == {"toxic": 0.0}
    path = written(tmp_path, "t.jsonl", '{"text": "x", "a": true, "b": false}\n')
    assert read_label_set_examples(path, label=["a", "b"]).labels == [{"a": 1.0, "b": 0.0}]
    path = written(tmp_path, "u.csv", 'text,"a,b"\nx,c|d\n')  # a column that is called so
    assert read_label_set_examples(path, label="a,b").labels == [["c", "d"]]


def test_no_labels(tmp_path):
    path = written(tmp_path, "t.tsv", "text\tlabels\na\t \nb\t\n")
    assert read_label_set_examples(path).labels is None
    with pytest.raises(ValueError, match="must have labels. Received: an empty column `labels`"):
        read_label_set_examples(path, labeled=True)
    assert read_label_set_examples(path, labeled=False).labels is None
    path = written(tmp_path, "u.tsv", "text\tx\na\t\n")
    for read in (check_label_set_columns, lambda p: read_label_set_examples(p, labeled=True)):
        with pytest.raises(ValueError, match="by --label COLUMN .*Received: columns `text`, `x`"):
            read(path)
    found = read_label_set_examples(rows_of(tmp_path, [], []), labeled=True)
    with pytest.raises(ValueError, match="must have labels. Received: no label in 2 examples"):
        label_set_names(found)


@pytest.mark.parametrize(
    "value, received",
    [(None, "nothing"), (True, "True"), ([["a"]], r"\[\['a'\]\]"), ([0.5], r"\[0.5\]"), (1.5, "1")],
)
def test_wrong_labels(tmp_path, value, received):
    message = rf"rows.jsonl, line 2, column `labels`: the labels must be a list .* {received}"
    with pytest.raises(ValueError, match=message):
        read_label_set_examples(rows_of(tmp_path, ["a"], value))


@pytest.mark.parametrize("value", ["a|\ud800", ["\ud800"], {"\ud800": 1}])
def test_labels_that_utf8_cannot_hold(tmp_path, value):
    message = r"line 2, column `labels`: the value must be text that UTF-8 can hold.*escape\.$"
    with pytest.raises(ValueError, match=message):
        read_label_set_examples(rows_of(tmp_path, ["a"], value))


@pytest.mark.parametrize("value", ["2", "-1", "yes", "", "nan"])
def test_wrong_numbers_in_columns(tmp_path, value):
    path = written(tmp_path, "t.csv", f"text,a,b\nx,0,1\ny,1,{value}\n")
    message = "line 3, column `b`: the label must be 0 or 1, or a number between. Received: "
    with pytest.raises(ValueError, match=message):
        read_label_set_examples(path, label="a,b")


def test_unknown_labels_and_columns(tmp_path):
    found = read_label_set_examples(written(tmp_path, "t.tsv", TSV))
    message = "t.tsv, line 5: the label must be one of `anger`, `joj`. Received: 'love'"
    with pytest.raises(ValueError, match=message):
        check_label_sets(found.select([2, 3]), ["anger", "joj"])
    with pytest.raises(ValueError, match="Received: 'joy'. Did you mean `joj`?"):
        label_set_targets(found, ["anger", "joj", "love"])
    path = written(tmp_path, "t.csv", CSV)
    for read in (check_label_set_columns, read_label_set_examples):
        with pytest.raises(ValueError, match="column `insolt`.*Did you mean `insult`?"):
            read(path, "comment", label="toxic,insolt")


@pytest.mark.parametrize(
    "given, message",
    [
        ({"label": "toxic,comment"}, "`text_a` and `label` must be different columns. Received: "),
        ({"label": ["toxic", "toxic"]}, r"^`label` must be different .*: \['toxic', 'toxic'\]$"),
        ({"text_b": "toxic", "label": "toxic,insult"}, "`text_b` and `label` must be different"),
    ],
)
def test_a_column_given_twice_is_refused(tmp_path, given, message):
    path = written(tmp_path, "t.csv", CSV)
    for read in (check_label_set_columns, read_label_set_examples):
        with pytest.raises(ValueError, match=message):
            read(path, "comment", **given)


def test_labels_that_differ_in_blanks_are_refused(tmp_path):
    rows = rows_of(tmp_path, {"a": 1}, {"a ": 1})
    with pytest.raises(ValueError, match=r"Received: 'a' \(line 1\) and 'a ' \(line 2\)$"):
        label_set_names(read_label_set_examples(rows))
