"""Examples from files. Expected values by hand."""

import pytest

from kbert.data.classification.label_sets import (
    check_label_set_columns,
    read_label_set_examples,
)
from kbert.data.classification.text_pairs import (
    TextExamples,
    check_text_columns,
    read_text_examples,
)


def write(path, content):
    path.write_text(content, encoding="utf-8")
    return path


def test_columns_are_found(tmp_path):
    path = write(tmp_path / "d.tsv", "id\ttext\tlabel\n7\thello\tgood\n8\t\tbad\n")
    with pytest.warns(UserWarning, match="1 of 2 rows have an empty text.* is line 3"):
        examples = read_text_examples(path)
    assert examples == TextExamples(
        ["hello", ""], None, ["good", "bad"], ["7", "8"], str(path), [2, 3]
    )
    assert len(examples) == 2


@pytest.mark.parametrize(
    "first, second",
    [
        ("text_a", "text_b"),
        ("sentence1", "sentence2"),
        ("question1", "question2"),
        ("premise", "hypothesis"),
        ("question", "sentence"),
        ("text1", "text2"),
    ],
)
def test_pairs_are_found(tmp_path, first, second):
    path = write(tmp_path / "d.csv", f'{second},{first},gold_label\n"b, b",a,x\n')
    examples = read_text_examples(path)
    assert (examples.text_a, examples.text_b, examples.labels) == (["a"], ["b, b"], ["x"])
    assert examples.ids is None


def test_columns_are_given(tmp_path):
    path = write(tmp_path / "d.tsv", "text\ttitle\tbody\ttopic\tkey\nt\tA\tB\tx\tk1\n")
    examples = read_text_examples(path, "title", "body", "topic", "key")
    assert examples == TextExamples(["A"], ["B"], ["x"], ["k1"], str(path), [2])
    assert read_text_examples(path, "title").text_b is None


def test_a_column_given_twice_is_refused(tmp_path):
    path = write(tmp_path / "d.tsv", "text\tother\tlabel\na\tb\tx\n")
    for given, names in (
        ({"text_a": "text", "text_b": "text"}, "`text_a` and `text_b`"),
        ({"text_b": "text"}, "`text_a` and `text_b`"),
        ({"label": "text"}, "`text_a` and `label`"),
        ({"text_a": "other", "text_b": "label"}, "`text_b` and `label`"),
    ):
        for read in (read_text_examples, check_text_columns, read_label_set_examples):
            with pytest.raises(ValueError, match=f"d.tsv: {names} must be different columns. Rec"):
                read(path, **given)
    for label in (["label", "text"], {"a": "label", "b": "text"}):
        with pytest.raises(ValueError, match="d.tsv: `text_a` and `label` must be different col"):
            read_text_examples(path, label=label)
    path = write(tmp_path / "n.tsv", "a\tb\n")
    with pytest.raises(ValueError, match="different columns. Received: 0 for both"):
        read_text_examples(path, text_a=0, label=0)


def test_columns_by_index_mean_no_header(tmp_path):
    path = write(tmp_path / "d.tsv", "s1\t1\t\tfirst\ns2\t0\t*\tsecond\n")
    examples = read_text_examples(path, text_a=3, label=1)
    assert (examples.text_a, examples.labels) == (["first", "second"], ["1", "0"])
    assert examples.lines == [1, 2]


def test_regression_takes_the_score(tmp_path):
    path = write(tmp_path / "d.tsv", "text\tscore\na\t4.5\nb\t0\n")
    assert read_text_examples(path, regression=True).labels == [4.5, 0.0]
    assert read_text_examples(path).labels is None


def test_soft_labels(tmp_path):
    path = write(tmp_path / "d.csv", "text,pos,neg\na,0.9,0.1\n")
    assert read_text_examples(path, label=["pos", "neg"]).labels == [{"pos": 0.9, "neg": 0.1}]
    row = '{"text": "a", "label": {"pos": 0.9, "neg": 0.1}, "id": 5}\n'
    path = write(tmp_path / "d.jsonl", row)
    examples = read_text_examples(path)
    assert (examples.labels, examples.ids) == ([{"pos": 0.9, "neg": 0.1}], ["5"])


def test_labels_may_be_required_or_ignored(tmp_path):
    path = write(tmp_path / "d.tsv", "text\tlabel\na\t\nb\t\n")
    assert read_text_examples(path).labels is None
    with pytest.raises(ValueError, match=r"must have labels\. Received: an empty column `label`"):
        read_text_examples(path, labeled=True)
    path = write(tmp_path / "d.tsv", "text\tother\na\tx\n")
    message = r"`label` must be given where no column is called label, gold_label, labels, category"
    message += r", class, as by --label COLUMN .*Received: columns `text`, `other`"
    with pytest.raises(ValueError, match=rf"d\.tsv, line 1: {message}"):
        read_text_examples(path, labeled=True)
    path = write(tmp_path / "e.tsv", "review\tverdict\na\tx\n")
    both = "line 1: `text_a` must .* as by --text-a COLUMN; `label` must .* by --label COLUMN .*R"
    for wrong in (
        lambda: read_text_examples(path, labeled=True),
        lambda: check_text_columns(path),
        lambda: read_label_set_examples(path, labeled=True),
        lambda: check_label_set_columns(path),
    ):
        with pytest.raises(ValueError, match=both):
            wrong()
    with pytest.raises(ValueError, match="line 1: `label` must be given where"):
        check_text_columns(path, "review")
    path = write(tmp_path / "d.tsv", "text\tlabel\na\tx\nb\t\n")
    assert read_text_examples(path, labeled=False).labels is None


def test_no_text_column_lists_the_columns(tmp_path):
    path = write(tmp_path / "d.tsv", "body\tlabel\na\tx\n")
    with pytest.raises(ValueError, match=r"line 1: `text_a` must be given .*`body`, `label`"):
        read_text_examples(path)
    with pytest.raises(ValueError, match=r"`text_a` must be given .*a file without a header"):
        read_text_examples(path, label=1)


def test_a_wrong_id(tmp_path):
    path = write(tmp_path / "d.jsonl", '{"text": "a", "id": 1}\n{"text": "b"}\n')
    message = r"d\.jsonl, line 2, column `id`: the id must be a string or an integer.*nothing"
    with pytest.raises(ValueError, match=message):
        read_text_examples(path)


def test_head_and_lengths():
    examples = TextExamples(["a", "b"], ["c", "d"], [1.0, 2.0], ["0", "1"], "f", [1, 2])
    assert examples.head(1) == TextExamples(["a"], ["c"], [1.0], ["0"], "f", [1])
    with pytest.raises(ValueError, match=r"`count` must be at least 1\. Received: count=0"):
        examples.head(0)
    with pytest.raises(ValueError, match=r"`text_b` must be as long as `text_a`, 2.*1 items"):
        TextExamples(["a", "b"], ["c"], None, None, "f", [1, 2])


def test_json_by_id(tmp_path):
    path = write(
        tmp_path / "d.json",
        '{"0": {"text_a": "a", "text_b": "b", "label": "x"},\n'
        ' "1": {"text_a": "c", "text_b": "d", "label": "y"}}',
    )
    expected = TextExamples(["a", "c"], ["b", "d"], ["x", "y"], ["0", "1"], str(path), [1, 2])
    assert read_text_examples(path) == expected


@pytest.mark.parametrize("read", [read_text_examples, read_label_set_examples])
def test_empty_texts_of_labelled_examples_are_told_once(tmp_path, read, recwarn):
    path = write(tmp_path / "d.tsv", "text\tlabel\na\tx\n \u2003\tx\nb\tx\n\ty\n")
    read(path)
    (one,) = recwarn.list
    assert one.category is UserWarning and str(one.message) == (
        f"{path}: 2 of 4 rows have an empty text, or one of white space alone; the first is line 3."
    )
    assert one.filename == __file__
    recwarn.clear()
    read(path, labeled=False)
    assert not recwarn.list


def test_a_pair_counts_once_as_empty(tmp_path):
    path = write(tmp_path / "d.tsv", "text_a\ttext_b\tlabel\na\tb\tx\n\t\tx\na\t\ty\n")
    with pytest.warns(UserWarning, match="2 of 3 rows have an empty text.* the first is line 3"):
        read_text_examples(path)
