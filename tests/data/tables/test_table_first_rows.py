"""Columns told from the first lines of large files, and what small ones tell besides."""

import gzip
import os
import warnings

import pytest

from kbert.data.classification.multiple_choice import check_choice_columns
from kbert.data.classification.text_pairs import check_text_columns
from kbert.data.tables.table import check_columns, first_rows

MANY = 40_000


@pytest.mark.parametrize("end", ["", ".gz"])
@pytest.mark.parametrize(
    "name, first, row",
    [
        ("t.tsv", '\n"text"\tlabel\n', "a\tb\n"),
        ("t.csv", '"text",label\n', '"a\nb",c\n'),
        ("t.jsonl", '{"text": "a", "label": "b"}\n', '{"other": 1}\n'),
    ],
)
def test_the_first_lines_of_a_large_file(tmp_path, name, first, row, end):
    path = tmp_path / (name + end)
    content = (first + row * MANY).encode()
    # Random bytes keep a gzipped file large.
    content += os.urandom(200_000) if end else b""
    path.write_bytes(gzip.compress(content) if end else content)
    table = first_rows(path)
    expected = '"text"' if name == "t.tsv" else "text"  # TSV has no quotes
    assert table.columns == (expected, "label") and len(table.rows) == 1
    check_columns(path, ["label"])
    message = f"line 1: the file must have a column `lable`. Received: .*{expected}`, `label`"
    with pytest.raises(ValueError, match=message):
        check_columns(path, ["lable"])
    if name != "t.jsonl":
        assert first_rows(path, header=False).columns is None
        check_columns(path, [0, 1], header=False)
        with pytest.raises(ValueError, match=r"index must be in 0\.\.1"):
            check_columns(path, [2], header=False)


def test_what_the_first_lines_do_not_tell(tmp_path):
    pipe = tmp_path / "pipe.tsv"
    os.mkfifo(pipe)
    assert first_rows(pipe) is None  # it would wait for ever
    for name, content in (
        ("one.tsv", "a" * 200_000),
        ("one.csv", 'a,b\n"' + "c\n" * 100_000),
        ("one.json", "[" + " " * 200_000 + '{"text": "a"}]'),
    ):
        (tmp_path / name).write_text(content)
        assert first_rows(tmp_path / name) is None
    (tmp_path / "no.tsv.gz").write_bytes(b"\0" * 200_000)
    assert first_rows(tmp_path / "no.tsv.gz") is None
    with pytest.raises(ValueError, match="`path` must end in .tsv, .csv, .jsonl"):
        first_rows(tmp_path / "t.txt")


def test_a_small_file_is_read_whole_and_without_a_warning(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text('text\tlabel\n"a ""b"""\tc\n')  # which looks quoted
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(first_rows(path).rows) == 1
    path.write_text("text\tlabel\na\n")
    with pytest.raises(ValueError, match="line 2: each row must have 2 fields"):
        first_rows(path)
    path.with_suffix(".json").write_text('[{"text": "a"}, {"label": "b"}]')
    assert first_rows(path.with_suffix(".json")).columns == ("text", "label")


def test_columns_of_texts(tmp_path):
    path = tmp_path / "t.tsv"
    path.write_text("text\tscore\ta\na\t1\tb\n")
    check_text_columns(path, regression=True)
    check_text_columns(path, "a", "text", "score")
    check_text_columns(path, 0, None, 2)
    with pytest.raises(ValueError, match="by --label COLUMN .*Received: columns `text`, `score`"):
        check_text_columns(path)
    with pytest.raises(ValueError, match="have a column `b`"):
        check_text_columns(path, "a", "b", "score")
    path.write_text("body\tlabel\na\tb\n")
    with pytest.raises(ValueError, match="`text_a` must be given where no column is called"):
        check_text_columns(path)


def test_columns_of_choices(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"context": "a", "choices": ["b", "c"], "label": 0}\n')
    check_choice_columns(path)
    path.write_text('{"context": "a", "choices": ["b", "c"]}\n')
    with pytest.raises(ValueError, match="have a column `label`"):
        check_choice_columns(path)
    path = tmp_path / "c.csv"
    path.write_text("sent1,sent2,ending0,ending1,ending2,label\na,b,c,d,e,0\n")
    with pytest.raises(ValueError, match="have a column `ending3`.*Did you mean `ending"):
        check_choice_columns(path)
