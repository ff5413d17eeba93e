import os

import pytest

from kbert.training.config.pretraining_config import found_files


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
