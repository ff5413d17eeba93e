"""kbert.json beside the SavedModel."""

from pathlib import Path

import pytest

from kbert.serving.format.version_folders import METADATA_FILE, read_metadata, write_metadata


def test_what_is_written_is_read_in_the_same_order(tmp_path: Path):
    metadata = {"labels": ["z", "ä", "中"], "class": "Classifier", "signatures": {"b": {}, "a": {}}}
    write_metadata(tmp_path, metadata)
    found = read_metadata(tmp_path)
    assert found == metadata
    assert list(found) == list(metadata)
    assert list(found["signatures"]) == ["b", "a"]
    assert "中" in (tmp_path / "assets.extra" / "kbert.json").read_text(encoding="utf-8")


def test_other_folders_and_damaged_files_are_refused(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="`export_dir` must be an export of kbert"):
        read_metadata(tmp_path)
    file = tmp_path / METADATA_FILE
    file.parent.mkdir()
    file.write_bytes(b"{")
    with pytest.raises(ValueError, match="kbert.json` must be a JSON file"):
        read_metadata(tmp_path)
    file.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="kbert.json` must be a JSON file"):
        read_metadata(tmp_path)
    file.write_text("[]")
    with pytest.raises(ValueError, match="kbert.json` must hold a JSON object. Received: a list"):
        read_metadata(tmp_path)
    file.write_text("{}")
    with pytest.raises(ValueError, match="must hold an object with `signatures`"):
        read_metadata(tmp_path)
