"""Files read as one: by hand."""

import pytest

from kbert.data.pretraining.corpus_cuts import joined_parts
from tests.data.small_corpora import written


def read(paths, size):
    parts = list(joined_parts(paths, size))
    assert all(len(part) <= max(size, 3) for part in parts)  # 3 bytes stand between two files
    return b"".join(parts)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_files_follow_each_other(tmp_path, size):
    paths = [
        written(tmp_path / "a.txt", "first \u00e4"),
        written(tmp_path / "b.txt.gz", "second\n"),
        written(tmp_path / "c.txt", ""),
        written(tmp_path / "d.txt", "last"),
    ]
    expected = "first \u00e4\n\x1c\nsecond\n\n\x1c\n\n\x1c\nlast".encode()
    assert read(paths, size) == expected
    assert read([], size) == b""


def test_what_is_no_gzip_is_named(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(b"plain")
    with pytest.raises(ValueError, match=r"a\.gz: the file must be gzip data\. Received: Not a gz"):
        read([path], 10)
