"""Tables from files of each format. Expected values by hand."""

import gzip

import pytest

from kbert.data.tables.table import read_table


def write(path, content):
    data = content if isinstance(content, bytes) else content.encode("utf-8")
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


CONTENTS = {
    "tsv": "text\tlabel\ncafé 🙂\tgood\n\nnext\tbad\n",
    "csv": 'text,label\n"café 🙂",good\n\nnext,bad\n',
    "jsonl": '\n{"text": "café 🙂", "label": "good"}\n\n{"text": "next", "label": "bad"}\n',
    "json": (
        '{\n"0": {"text": "café 🙂", "label": "good"},\n\n"1": {"text": "next", "label": "bad"}}'
    ),
}


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("kind", sorted(CONTENTS))
def test_every_format_gives_the_same_table(tmp_path, kind, suffix):
    table = read_table(write(tmp_path / f"data.{kind}{suffix}", CONTENTS[kind]))
    assert table.texts("text") == ["café 🙂", "next"]
    assert table.values("label") == ["good", "bad"]
    assert table.lines == [2, 4]


def test_the_format_may_be_given(tmp_path):
    path = write(tmp_path / "data.txt", CONTENTS["csv"])
    assert read_table(path, format="csv").texts("text") == ["café 🙂", "next"]
    with pytest.raises(
        ValueError, match=r"`path` must end in .tsv, .* which tells the format.*data\.txt"
    ):
        read_table(path)
    with pytest.raises(ValueError, match=r"`format` must be one of .*format='xml'"):
        read_table(path, format="xml")


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    table = read_table(write(tmp_path / "d.tsv", b"\xef\xbb\xbftext\tlabel\r\na\tb\r\n"))
    assert table.columns == ("text", "label")
    assert table.rows == [["a", "b"]]


def test_broken_utf8_names_the_line(tmp_path):
    path = write(tmp_path / "d.tsv", b"\xef\xbb\xbftext\nfine\ncaf\xe9 here\n")
    with pytest.raises(ValueError, match=r"d\.tsv, line 3: the file must be UTF-8.*byte 0xe9"):
        read_table(path)


@pytest.mark.parametrize(
    "content, message",
    [
        ("", r"d\.tsv: the file must hold examples\. Received: an empty file"),
        ("\n \n", r"d\.tsv: the file must hold examples\. Received: an empty file"),
        ("\na\tb\n", r"d\.tsv: the file must hold examples\. Received: only a header \(line 2\)"),
        ("a\tb\n1\t2\n3\n", r"d\.tsv, line 3: each row must have 2 fields.*Received: 1 field:"),
        ("a\tb\n1\t2\t3\n", r"d\.tsv, line 2: each row must have 2 fields.*Received: 3 fields:"),
    ],
)
def test_a_file_that_does_not_hold_rows(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        read_table(write(tmp_path / "d.tsv", content))


def test_malformed_rows_may_be_left_out_with_one_warning(tmp_path):
    path = write(tmp_path / "d.tsv", "a\tb\n1\t2\n3\n4\t5\t6\n7\t8\n")
    with pytest.warns(UserWarning, match=r"2 rows without 2 fields were left out \(lines 3, 4\)"):
        table = read_table(path, malformed_rows="skip")
    assert table.rows == [["1", "2"], ["7", "8"]]
    assert table.lines == [2, 5]


def test_nothing_left_after_leaving_out_is_an_error(tmp_path):
    path = write(tmp_path / "d.tsv", "a\tb\n1\n2\n")
    with pytest.raises(ValueError, match=r"line 2: each row must have 2 fields"):
        read_table(path, malformed_rows="skip")


QUOTED = 'text\tlabel\n"He said ""no""."\t1\nplain\t0\n'


def test_tsv_that_looks_quoted_is_read_as_it_stands_with_a_warning(tmp_path):
    path = write(tmp_path / "d.tsv", QUOTED)
    with pytest.warns(UserWarning, match=r"the fields look quoted as in CSV.*quoting=True"):
        table = read_table(path)
    assert table.texts("text") == ['"He said ""no""."', "plain"]


@pytest.mark.parametrize("quoting, first", [(True, 'He said "no".'), ("auto", 'He said "no".')])
def test_quoting_of_tsv(tmp_path, quoting, first, recwarn):
    table = read_table(write(tmp_path / "d.tsv", QUOTED), quoting=quoting)
    assert table.texts("text")[0] == first
    assert not recwarn.list


def test_quoting_false_is_silent(tmp_path, recwarn):
    table = read_table(write(tmp_path / "d.tsv", QUOTED), quoting=False)
    assert table.texts("text")[0] == '"He said ""no""."'
    assert not recwarn.list


def test_auto_leaves_running_text_alone(tmp_path):
    path = write(tmp_path / "d.tsv", 'text\n"He ""said\n"quoted ""x"""\n')
    assert read_table(path, quoting="auto").texts("text") == ['"He ""said', '"quoted ""x"""']


def test_unknown_options(tmp_path):
    path = write(tmp_path / "d.tsv", "a\n1\n")
    with pytest.raises(ValueError, match=r"`malformed_rows` must be one of .*'drop'"):
        read_table(path, malformed_rows="drop")
    with pytest.raises(ValueError, match=r"`quoting` must be one of .*'yes'"):
        read_table(path, quoting="yes")


def test_a_missing_column_lists_those_that_are_there(tmp_path):
    table = read_table(write(tmp_path / "d.tsv", "sentence\tlabel\nx\ty\n"))
    message = (
        r"d\.tsv, line 1: the file must have a column `Sentense`\. Received: columns "
        r"`sentence`, `label`\. Did you mean `sentence`\?"
    )
    with pytest.raises(ValueError, match=message):
        table.values("Sentense")


def test_a_column_that_occurs_twice_is_ambiguous(tmp_path):
    table = read_table(write(tmp_path / "d.tsv", "text\ttext\nx\ty\n"))
    with pytest.raises(ValueError, match="have one column `text`. Received: columns `text`"):
        table.values("text")
    assert table.values(1) == ["y"]


def test_columns_by_index(tmp_path):
    table = read_table(write(tmp_path / "d.tsv", "1\tx\n0\ty\n"), header=False)
    assert table.values(0) == ["1", "0"]
    assert table.lines == [1, 2]
    with pytest.raises(ValueError, match=r"index must be in 0\.\.1 .*column=2"):
        table.values(2)
    with pytest.raises(ValueError, match=r"given by index .* where one is.*column='text'"):
        table.values("text")


def test_a_json_value_that_is_no_string(tmp_path):
    path = write(tmp_path / "d.jsonl", '{"text": "a"}\n{"text": 3}\n{"other": 1}\n')
    message = r"d\.jsonl, line 2, column `text`: the value must be a string\. Received: 3"
    with pytest.raises(ValueError, match=message):
        read_table(path).texts("text")
    path = write(tmp_path / "d.jsonl", '{"text": "a"}\n{"other": 1}\n')
    with pytest.raises(ValueError, match=r"line 2, column `text`.*Received: nothing"):
        read_table(path).texts("text")
