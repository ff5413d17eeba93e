import gzip

import pytest

from kbert.data.tables.text_files import open_text, read_text


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
