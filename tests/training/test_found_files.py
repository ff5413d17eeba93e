import os

import pytest
import tensorflow as tf

from kbert.training.found_files import found_files, found_records


def test_names_and_patterns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("b.txt", "a.txt", "c[1].txt", "deep/er/d.txt"):
        os.makedirs(os.path.dirname(tmp_path / name), exist_ok=True)
        (tmp_path / name).touch()

    def names(*patterns):
        return [str(file) for file in found_files("text", patterns)]

    assert names("*.txt") == ["a.txt", "b.txt", "c[1].txt"]
    assert names("b.txt", "?.txt") == ["b.txt", "a.txt"]  # each once
    assert names("c[1].txt") == ["c[1].txt"]
    assert names("**/*.txt")[-1] == "deep/er/d.txt" and len(names("**/*.txt")) == 4
    for pattern in ("e.txt", "*.gz", "deep"):
        with pytest.raises(FileNotFoundError, match="`text` must be files, or patterns that match"):
            names("a.txt", pattern)
    with pytest.raises(FileNotFoundError, match="Received: 'deep', which is a folder"):
        names("deep")


def test_text_is_of_this_machine():
    with pytest.raises(ValueError, match="must be files of this machine.*Received: 'gs://b/x.txt'"):
        found_files("text", ["gs://b/x.txt"])


def test_records_are_anywhere_that_tensorflow_reads(tmp_path):
    """TensorFlow's file system in memory stands for a bucket."""
    tf.io.gfile.makedirs("ram://bucket/folder")
    for name in ("b-1.tfrecord", "b-0.tfrecord", "other"):
        with tf.io.gfile.GFile(f"ram://bucket/folder/{name}", "w") as file:
            file.write("x")
    (tmp_path / "a.tfrecord").touch()
    local = str(tmp_path / "a.tfrecord")
    names = [f"ram://bucket/folder/b-{number}.tfrecord" for number in (0, 1)]
    patterns = [names[1], "ram://bucket/folder/b-*.tfrecord", str(tmp_path / "*.tfrecord")]
    assert found_records("records", patterns) == [names[1], names[0], local]
    for pattern in ("ram://bucket/folder/c-*", "ram://bucket/none", "ram://bucket/folder"):
        with pytest.raises(FileNotFoundError, match="`records` must be files, or patterns that"):
            found_records("records", [pattern])
    with pytest.raises(OSError, match="in places that can be reached. Received: 'abc://x/y'. File"):
        found_records("records", ["abc://x/y"])
