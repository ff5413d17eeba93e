"""Rows of TSV and CSV text. Expected rows were written by hand from RFC 4180."""

import csv
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbert.data.tables.delimited_rows import looks_quoted, plain_rows, quoted_rows


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
