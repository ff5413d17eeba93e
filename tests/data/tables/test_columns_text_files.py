import gzip

import pytest

from kbert.data.tables.columns import is_gzipped, open_text, read_text, text_lines


def test_open_text(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"text")
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"text"))
    for name in ("a.txt", "a.gz"):
        with open_text(tmp_path / name) as file:
            assert file.read() == b"text"


def test_what_is_no_gzip_says_so(tmp_path):
    path = tmp_path / "d.txt.gz"
    path.write_bytes(b"text\nplain\n")
    with pytest.raises(ValueError, match=r"d\.txt\.gz: the file must be gzip data"):
        read_text(path)
    path.write_bytes(gzip.compress(b"text\nplain\n" * 50)[:-9])
    with pytest.raises(ValueError, match=r"d\.txt\.gz: the file must be gzip data"):
        read_text(path)


def test_utf16_is_recognised(tmp_path):
    (tmp_path / "d.tsv").write_bytes("text\nhallo\n".encode("utf-16"))
    with pytest.raises(ValueError, match=r"d\.tsv, line 1: .*It looks like UTF-16: convert"):
        read_text(tmp_path / "d.tsv")


def test_endings_in_capitals(tmp_path):
    (tmp_path / "A.TXT.GZ").write_bytes(gzip.compress(b"text"))
    assert is_gzipped(tmp_path / "A.TXT.GZ") and not is_gzipped("gz")
    assert read_text(tmp_path / "A.TXT.GZ") == "text"


def test_lines_come_one_at_a_time():
    def stream():
        yield "\ufeffa\u2028b\r\n".encode()
        yield b"\xff\n"

    lines = text_lines("f", stream())
    assert next(lines) == "a\u2028b\r\n"
    message = "f, line 2: the file must be UTF-8. Received: byte 0xff .*utf-8 FILE > NEW\\).$"
    with pytest.raises(ValueError, match=message):
        next(lines)
    assert list(text_lines("f", stream(), "replace")) == ["a\u2028b\r\n", "\ufffd\n"]
