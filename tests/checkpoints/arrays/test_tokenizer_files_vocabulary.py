import json
from pathlib import Path

import pytest

from kbert.checkpoints.arrays.tokenizer_files import find_vocabulary


def test_a_file(tmp_path: Path) -> None:
    # A line separator of Unicode is a token like any other.
    (tmp_path / "vocab.txt").write_bytes("a\r\n\u2028\n##é\n".encode())
    path, tokens = find_vocabulary(tmp_path, 3)
    assert path == tmp_path / "vocab.txt"
    assert tokens == ("a", "\u2028", "##é")


def test_more_tokens_than_rows(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("a\nb\nc\n")
    with pytest.raises(ValueError, match="Received: 3 tokens, 2 rows"):
        find_vocabulary(tmp_path, 2)


def test_a_file_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match="vocab.txt` must be UTF-8. Received: 'utf-8' codec"):
        find_vocabulary(tmp_path, 5)


def test_tokenizer_json_alone(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"model": {"type": "WordPiece", "vocab": {"b": 1, "a": 0}}}))
    assert find_vocabulary(tmp_path, 5) == (None, ("a", "b"))
    path.write_text(json.dumps({"model": {"vocab": {"b": 2, "a": 0}}}))
    assert find_vocabulary(tmp_path, 5) == (None, None)


def test_nothing(tmp_path: Path) -> None:
    assert find_vocabulary(tmp_path, 5) == (None, None)
