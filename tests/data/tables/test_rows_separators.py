"""Headers whose fields other characters separate than those of the format."""

import pytest

from kbert.data.tables.rows import checked_header, text_rows
from kbert.data.tables.table import check_columns, read_table

GOOD = {
    "csv": (
        *("text\n", "text,label\n", "a;b,c\n", "\n \ntext\n", '"a;b"\n', '"a;\nb",c\n'),
        *("text\ra;b\r", '"a ""b"" ;"\n'),
    ),
    "tsv": ("text\n", "text\tlabel\n", "a, b;\tc\n", '"a, b"\n', "text\r\na, b\n"),
    "jsonl": ('{"a": 1}\n', "a;b\n"),
}


@pytest.mark.parametrize("kind, text", [(kind, text) for kind in GOOD for text in GOOD[kind]])
def test_good_headers_lose_no_line(kind, text):
    lines = text.splitlines(keepends=True) + ["x;y\n", "z,z\tz\n"]
    assert list(checked_header("f", lines, kind)) == lines


@pytest.mark.parametrize(
    "name, header, seem",
    [
        ("t.csv", "text;label", "semicolons"),
        ("t.csv", '"text, or more";"label"', "semicolons"),
        ("t.csv", "sep=;", "semicolons"),
        ("t.csv", "text\tlabel;s\tid", "tabs"),
        ("t.tsv", "text,label", "commas"),
        ("t.tsv", "text;label", "semicolons"),
    ],
)
def test_other_separators_are_told_before_the_rows_are_read(tmp_path, name, header, seem):
    path = tmp_path / name
    message = (
        r"line 2: the fields must be separated by commas in \.csv, and by tabs in \.tsv\. "
        rf"Received: .*, whose fields seem to be separated by {seem} \("
    )
    for rows in (1, 40_000):  # a small file, and one of which first the first lines are read
        path.write_text(f'\n{header}\nsaid "no"; never;1\n' * rows)
        for read in (read_table, lambda path: check_columns(path, ["text"])):
            with pytest.raises(ValueError, match=message):
                read(path)


def test_only_a_header_is_looked_at(tmp_path):
    (tmp_path / "t.csv").write_text("Well; yes\nno\n")
    assert read_table(tmp_path / "t.csv", header=False).rows == [["Well; yes"], ["no"]]
    assert list(text_rows("f", [], "csv")) == []
    rows = text_rows("f", ["Well, yes; no\n"], "tsv", header=False)
    assert list(rows) == [(1, ["Well, yes; no"])]
