from pathlib import Path

import pytest

from kbert.storage.json_files import json_text, read_json_object


def test_both_ways(tmp_path: Path) -> None:
    value = {"b": 1, "a": {"é": [1e-12, None]}}
    (tmp_path / "x.json").write_text(json_text(value), encoding="utf-8")
    assert read_json_object(tmp_path / "x.json") == value
    assert json_text(value).startswith('{\n  "b": 1') and "é" in json_text(value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "x.json` must be a JSON file. Received: Expecting property name"),
        (b"\xff", "x.json` must be a JSON file. Received: 'utf-8' codec"),
        (b"[]", "x.json` must hold a JSON object. Received: a list"),
    ],
)
def test_broken_files(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "x.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_json_object(tmp_path / "x.json")
