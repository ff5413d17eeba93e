"""Files of rows: what is read of each format, block by block, and what is refused."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kbert.serving.batch_prediction import row_files
from kbert.serving.batch_prediction.row_files import file_format, read_blocks

# A line separator and a next-line character end no line; NUL and quotes are text.
TEXTS = ["a\u2028b\x85c", 'say "x', "", "nul \0", "中文 \U0001f600", "long " * 50]


def rows(path: Path, **kwargs: Any) -> list[dict[str, Any]]:
    return [row for block in read_blocks(path, **kwargs) for row in block.rows]


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_json_lines(tmp_path: Path):
    found = [{"text": text, "n": i} for i, text in enumerate(TEXTS)]
    content = "\ufeff" + "\n\n".join(json.dumps(row, ensure_ascii=False) for row in found)
    path = write(tmp_path / "a.jsonl", content)
    assert rows(path) == found
    gzipped = write(tmp_path / "a.jsonl.gz", gzip.compress(content.encode()))
    assert rows(gzipped) == found
    blocks = list(read_blocks(path, 4))
    assert [block.number for block in blocks] == [0, 1]
    assert blocks[1].places == ["line 9", "line 11"] and blocks[1].columns == ["text", "n"]


def test_tab_separated(tmp_path: Path):
    lines = "".join(f"{text}\t{i}\n" for i, text in enumerate(TEXTS))
    path = write(tmp_path / "a.tsv", f"text\tn\r\n{lines}")
    assert rows(path) == [{"text": text, "n": str(i)} for i, text in enumerate(TEXTS)]


def test_a_line_without_anything(tmp_path: Path):
    """Of one column it is a row with an empty text, of several it is none."""
    found = rows(write(tmp_path / "a.tsv", "text\nfoo\n\nbar\n"))
    assert found == [{"text": "foo"}, {"text": ""}, {"text": "bar"}]
    found = rows(write(tmp_path / "a.csv", "text\nfoo\n\nbar\n\n"))
    assert found == [{"text": "foo"}, {"text": ""}, {"text": "bar"}, {"text": ""}]
    found = rows(write(tmp_path / "b.tsv", "\ntext\tn\nfoo\t1\n\nbar\t2\n"))
    assert found == [{"text": "foo", "n": "1"}, {"text": "bar", "n": "2"}]


def test_comma_separated(tmp_path: Path):
    path = write(tmp_path / "a.csv", 'text,n\n"two\nlines, ""quoted""",1\r\n\nplain,2\n')
    (block,) = read_blocks(path)
    assert block.rows == [{"text": 'two\nlines, "quoted"', "n": "1"}, {"text": "plain", "n": "2"}]
    assert block.places == ["line 2", "line 5"]
    assert rows(write(tmp_path / "b.csv", f"text\n{'x' * 200_000}\n"))[0]["text"] == "x" * 200_000


def test_parquet(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    import pyarrow.parquet as parquet

    table = arrow.table({"text": TEXTS, "choices": [["a", "b"]] * len(TEXTS)})
    parquet.write_table(table, tmp_path / "a.parquet")
    blocks = list(read_blocks(tmp_path / "a.parquet", 4))
    assert [row for block in blocks for row in block.rows] == table.to_pylist()
    assert blocks[1].places == ["row 5", "row 6"] and blocks[0].schema == table.schema
    parquet.write_table(table.slice(0, 0), tmp_path / "empty.parquet")
    (block,) = read_blocks(tmp_path / "empty.parquet")
    assert block.rows == [] and block.columns == ["text", "choices"]
    with pytest.raises(ValueError, match="the file must be Parquet"):
        rows(write(tmp_path / "b.parquet", "no"))
    with pytest.raises(FileNotFoundError, match="`--input` must be a file"):
        rows(tmp_path / "none.parquet")


def test_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def absent(name: str) -> Any:
        raise ImportError(f"No module named {name!r}")

    monkeypatch.setattr(row_files.importlib, "import_module", absent)
    with pytest.raises(ImportError, match=r'pip install "\.\[parquet\]"'):
        rows(write(tmp_path / "a.parquet", ""))


def test_files_without_rows(tmp_path: Path):
    for name, content, columns in (
        ("a.jsonl", "", []),
        ("a.tsv", "", []),
        ("b.tsv", "text\tn\n", ["text", "n"]),
        ("c.csv", "text,n\n", ["text", "n"]),
    ):
        (block,) = read_blocks(write(tmp_path / name, content))
        assert block.rows == [] and block.columns == columns


def test_long_texts_make_short_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(row_files, "BLOCK_BYTES", 100)
    path = write(tmp_path / "a.tsv", "text\n" + f"{'x' * 60}\n" * 5)
    assert [len(block.rows) for block in read_blocks(path)] == [2, 2, 1]


def test_long_texts_in_parquet_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    arrow = pytest.importorskip("pyarrow", reason='pip install ".[parquet]"')
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(row_files, "BLOCK_BYTES", 100)
    monkeypatch.setattr(row_files, "_PARQUET_ROWS", 3)
    path = tmp_path / "a.parquet"
    texts = [f"{i}" * 30 for i in range(5)]
    parquet.write_table(arrow.table({"text": texts, "choices": [[t, "b"] for t in texts]}), path)
    blocks = list(read_blocks(path))
    assert [len(block.rows) for block in blocks] == [2, 2, 1]
    assert [block.number for block in blocks] == [0, 1, 2]
    assert [row["text"] for block in blocks for row in block.rows] == texts
    assert blocks[1].places == ["row 3", "row 4"] and blocks[2].schema is not None


def test_the_share_that_is_read_grows(tmp_path: Path):
    path = write(tmp_path / "a.tsv", "text\n" + "some words\n" * 50_000)
    told: list[float] = []
    assert len(rows(path, block_rows=10_000, on_progress=told.append)) == 50_000
    assert told == sorted(told) and len(set(told)) > 2 and told[-1] == 1.0


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.jsonl", '{"text": "a"}\n{"text": \n', "a.jsonl, line 2: each line must be a JSON obj"),
        ("a.jsonl", "[1]\n", r"line 1: each line must be a JSON object. Received: \[1\]"),
        ("a.jsonl", '{"text": NaN}\n', "NaN is no JSON"),
        ("a.jsonl", "[" * 100_000, "line 1: each line must be a JSON object"),
        ("a.jsonl", b'{"text": "a"}\n{"text": "\xff"}\n', "line 2: the file must be UTF-8.*0xff"),
        ("a.tsv", "a\tb\n1\n", r"line 2: each row must have 2 fields, as the first line has. Rec"),
        ("a.tsv", "a\ta\n", "line 1: the columns must have different names"),
        ("a.csv", 'a\n"b\n', "line 2: quoted fields must be closed"),
        ("a.csv", 'a\n"b"c\n', "line 2: quoted fields must be closed"),
        ("a.tsv.gz", b"no", "the file must be gzip data"),
        ("a.tsv.gz", gzip.compress(b"a\n" * 9999, mtime=0)[:-9], "the file must be gzip data"),
        ("a.txt", "", "`--input` must end in .jsonl, .tsv or .csv"),
        ("a.parquet.gz", "", "`--input` must end in"),
    ],
)
def test_what_is_refused(tmp_path: Path, name: str, content: str | bytes, message: str):
    with pytest.raises(ValueError, match=message):
        rows(write(tmp_path / name, content))


def test_formats_by_name():
    assert file_format("a/b.TSV.gz", "--input") == ("tsv", True)
    assert file_format("b.ndjson", "--input") == ("jsonl", False)
    with pytest.raises(ValueError, match="`--output` must end in"):
        file_format("b", "--output")
