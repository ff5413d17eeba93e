"""Rows of TSV, CSV and JSON Lines. Expected rows were written by hand from RFC 4180."""

import csv
import io
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.tables.rows import check_width, format_by_name, looks_quoted, text_rows


def plain_rows(text, delimiter, **kwargs):
    return unzipped(text_rows("f", lines_of(text), KINDS[delimiter], quoted=False, **kwargs))


def quoted_rows(source, text, delimiter, **kwargs):
    return unzipped(text_rows(source, lines_of(text), KINDS[delimiter], quoted=True, **kwargs))


def lines_of(text):
    return io.StringIO(text, newline="\n")


def unzipped(rows):
    found = list(rows)
    return [row for _, row in found], [line for line, _ in found]


KINDS = {"\t": "tsv", ",": "csv"}


def test_plain_rows_keep_quotes_and_know_their_lines():
    text = 'a\tb\r\n\n"x\ty"\nlast\t'
    rows, lines = plain_rows(text, "\t")
    assert rows == [["a", "b"], ['"x', 'y"'], ["last", ""]]
    assert lines == [1, 3, 4]


def test_only_line_feeds_end_a_line():
    # U+2028, U+0085 and form feed end a line for str.splitlines; they stand inside texts.
    text = "one\u2028two\tthree\x85four\nfive\x0csix\tseven"
    rows, _ = plain_rows(text, "\t")
    assert rows == [["one\u2028two", "three\x85four"], ["five\x0csix", "seven"]]


def test_quoted_rows_follow_rfc_4180():
    text = 'text,label\r\n"a, ""b""\nsecond line",1\r\n\r\nplain,2\r\n'
    rows, lines = quoted_rows("f.csv", text, ",")
    assert rows == [["text", "label"], ['a, "b"\nsecond line', "1"], ["plain", "2"]]
    assert lines == [1, 2, 5]


def test_an_open_quote_names_the_line_where_it_begins():
    with pytest.raises(ValueError, match=r"f\.csv, line 2: quoted fields must be closed"):
        quoted_rows("f.csv", 'a,b\n"open,1\nnext,2\n', ",")


def test_text_behind_a_closing_quote_is_an_error():
    with pytest.raises(ValueError, match=r"f\.csv, line 1: quoted fields must be closed"):
        quoted_rows("f.csv", '"a" b,1\n', ",")


def test_long_fields_are_read_and_the_limit_of_csv_is_put_back():
    before = csv.field_size_limit()
    rows, _ = quoted_rows("f.csv", f'"{"x" * 300_000}",1\n', ",")
    assert len(rows[0][0]) == 300_000
    assert csv.field_size_limit() == before


@pytest.mark.parametrize(
    "field, expected",
    [
        ('"a ""b"" c"', True),
        ("no quotes", False),
        ('"only enclosed"', False),
        ('he said "no"', False),
        ('"a ""b"" and "c"', False),
        ('"', False),
        ('""', False),
    ],
)
def test_looks_quoted(field, expected):
    assert looks_quoted([["1", field], ["2", "x"]]) is expected


def test_one_field_against_it_settles_the_matter():
    assert not looks_quoted([['"a ""b"" c"'], ['5" pipe']])


FIELDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(st.lists(FIELDS, min_size=2, max_size=4), min_size=1, max_size=6))
def test_what_csv_writes_is_read_back(rows):
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows(rows)
    assert quoted_rows("f.csv", buffer.getvalue(), ",")[0] == rows


@given(st.lists(st.lists(FIELDS, min_size=2, max_size=4), min_size=1, max_size=6))
def test_plain_rows_undo_a_join(rows):
    rows = [[re.sub(r"[\t\n\r]", "", field) for field in row] for row in rows]
    text = "".join("\t".join(row) + "\n" for row in rows)
    assert plain_rows(text, "\t") == (rows, list(range(1, len(rows) + 1)))


def test_a_lone_carriage_return_ends_a_line_of_csv():
    """As on old Macs; within quotes it is text, and counts as the end of a line."""
    rows, lines = quoted_rows("f.csv", 'a,b\r"c\rd",e\r\n\rf,g\r', ",")
    assert rows == [["a", "b"], ["c\rd", "e"], ["f", "g"]]
    assert lines == [1, 2, 5]
    assert plain_rows("a\rb\tc\n", "\t")[0] == [["a\rb", "c"]]


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_an_empty_line_is_a_row_of_one_column_where_asked_for(kind):
    found = unzipped(text_rows("f", lines_of("\na\n\nb\n"), kind, empty_rows=True))
    assert found == ([["a"], [""], ["b"]], [2, 3, 4])
    found = unzipped(text_rows("f", lines_of("a\n\nb\n"), kind))
    assert found == ([["a"], ["b"]], [1, 3])
    between = "\t" if kind == "tsv" else ","
    text = f"a{between}b\n\nc{between}d\n"
    assert unzipped(text_rows("f", lines_of(text), kind, empty_rows=True))[1] == [1, 3]


def test_rows_are_read_one_at_a_time():
    def lines():
        yield "a\tb\n"
        raise AssertionError("nobody asked for the second line")

    assert next(text_rows("f.tsv", lines(), "tsv")) == (1, ["a", "b"])


def test_json_lines_skip_blank_lines():
    lines = ['{"a": 1}\n', " \n", '{"a": NaN}\n']
    rows = list(text_rows("f.jsonl", lines, "jsonl"))
    assert rows[0] == (1, {"a": 1})
    assert rows[1][0] == 3 and math.isnan(rows[1][1]["a"])


@pytest.mark.parametrize(
    "line, message",
    [
        ("[1, 2]", r"f, line 2: each line must be a JSON object\. Received: \[1, 2\]$"),
        ('{"a": ', r"f, line 2: each line must be a JSON .*: \(Expecting value at column 7\)"),
        ("[" * 100_000, r"f, line 2: each line must be a JSON .* Received: \[{80}\.\.\. \("),
        ('{"a": NaN}', r"f, line 2: each line must be a JSON .* \(NaN is no JSON"),
    ],
)
def test_a_line_that_is_no_object(line, message):
    rows = text_rows("f", ['{"a": 1}\n', f"{line}\n"], "jsonl", constants=False)
    assert next(rows) == (1, {"a": 1})
    with pytest.raises(ValueError, match=message):
        next(rows)


def test_rows_of_another_width():
    check_width("f", 3, ["a", "b"], 2)
    told = r"f, line 3: each row must have 1 field, as the first line has\. Received: 2 fields: "
    with pytest.raises(ValueError, match=told + "`a`, `b`$"):
        check_width("f", 3, ["a", "b"], 1)
    with pytest.raises(ValueError, match="2 fields, as .* Received: 1 field: `just one field`$"):
        check_width("f", 3, ["just one field"], 2)


def test_formats_by_name():
    assert format_by_name("a/b.TSV.GZ") == "tsv"
    assert [format_by_name(f"b.{end}") for end in ("ndjson", "json", "csv")] == [
        *("jsonl", "json", "csv")
    ]
    assert format_by_name("tsv") is None and format_by_name("b.gz") is None
