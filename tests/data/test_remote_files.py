"""Files at names with a scheme: of TensorFlow's file system in memory, ram://."""

import gzip
from pathlib import Path

import pytest
import tensorflow as tf

from kbert.data.pretraining.corpus import Corpus
from kbert.data.remote_files import RemoteFile, fetched, is_remote

TEXT = "".join(f"Line {number} of a long text.\n\n" for number in range(400)).encode()


def put(name: str, content: bytes) -> str:
    tf.io.gfile.makedirs(name.rpartition("/")[0])
    with tf.io.gfile.GFile(name, "wb") as file:
        file.write(content)
    return name


def test_a_corpus_of_remote_files_is_that_of_local_ones(tmp_path: Path):
    contents = {"large.txt": TEXT, "small.txt": TEXT[:50], "some.txt.gz": gzip.compress(TEXT)}
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    local = [tmp_path / name for name in contents]
    remote = [RemoteFile(put(f"ram://corpus/{name}", contents[name])) for name in contents]
    found, expected = (
        [block.documents for block in Corpus(files, block_bytes=1000).blocks()]
        for files in (remote, local)
    )
    assert found == expected and len(found) > 10
    assert [file.name for file in remote] == list(contents)
    assert remote[0].stat().st_size == len(TEXT)
    with pytest.raises(FileNotFoundError, match="Received: 'ram://corpus', which is a folder"):
        Corpus([RemoteFile("ram://corpus")])
    with pytest.raises(FileNotFoundError, match="Received: .ram://corpus/none.txt"):
        Corpus([RemoteFile("ram://corpus/none.txt")])


def test_what_is_elsewhere_is_copied_and_what_is_here_is_not(tmp_path: Path):
    assert is_remote("gs://bucket/a") and not is_remote(tmp_path)
    with fetched(tmp_path) as same:
        assert same == tmp_path
    put("ram://folder/7/variables/data", b"numbers")
    put("ram://folder/7/saved_model.pb", b"graph")
    with fetched("ram://folder/7/") as copy:
        found = {str(p.relative_to(copy)): p.read_bytes() for p in copy.rglob("*") if p.is_file()}
        assert copy.name == "7"
    assert found == {"variables/data": b"numbers", "saved_model.pb": b"graph"}
    assert not copy.exists()
    put("ram://words/vocab.json", b"{}")
    put("ram://words/merges.txt", b"#")
    with fetched("ram://words/vocab.json") as vocabulary:
        assert vocabulary.read_bytes() == b"{}"
        assert (vocabulary.parent / "merges.txt").read_bytes() == b"#"
    with pytest.raises(FileNotFoundError, match="`path` must exist. Received: path='ram://no"):
        with fetched("ram://nothing"):
            pass
