"""Folders of captioners, as bytes and arrays."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kbert.checkpoints.captioning_folder import (
    CaptioningCheckpoint,
    is_captioning,
    read_captioning,
    write_captioning,
)

ARRAYS = {"a/kernel": np.arange(6, dtype="float32").reshape(2, 3), "b": np.ones(2, "float16")}
OTHERS = {"conv/kernel": np.full((1, 1, 3, 2), 2.0, "float32")}
ABOUT = "kbert_captioning.json"


def checkpoint(subwords: bytes = b"pieces") -> CaptioningCheckpoint:
    return CaptioningCheckpoint(
        "show-attend-tell",
        {"hidden_dim": 3},
        ARRAYS,
        {"preprocessing": "tf"},
        OTHERS,
        subwords,
        {"alpha": 0.5},
    )


def test_all_of_it_comes_back(tmp_path: Path):
    folder = write_captioning(checkpoint(), tmp_path / "model")
    assert is_captioning(folder) and not is_captioning(tmp_path)
    assert {file.name for file in folder.iterdir()} == {
        *(ABOUT, "model.safetensors", "extractor.safetensors", "subwords.model"),
    }
    again = read_captioning(folder)
    assert (again.architecture, again.decoder) == ("show-attend-tell", {"hidden_dim": 3})
    assert (again.extractor, again.settings) == ({"preprocessing": "tf"}, {"alpha": 0.5})
    assert again.subwords == b"pieces"
    for found, known in ((again.decoder_arrays, ARRAYS), (again.extractor_arrays, OTHERS)):
        assert sorted(found) == sorted(known)
        for name, array in known.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == array.dtype


@pytest.mark.parametrize("name", ["model.safetensors", "extractor.safetensors", "subwords.model"])
def test_a_changed_or_missing_file_is_named(tmp_path: Path, name: str):
    folder = write_captioning(checkpoint(), tmp_path / "model")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + b"\7")
    with pytest.raises(ValueError, match=f"{name}` must have the SHA-256 .* the file is damaged"):
        read_captioning(folder)
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read_captioning(folder)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"settings": None}, "must have decoder, extractor, settings, sha256. Missing: settings"),
        ({"decoder": 3, "sha256": None}, "Missing: decoder, sha256"),
        ({"format_version": 9}, "`format_version` must be 1.*format_version=9"),
        (
            {"architecture": "lstm"},
            "json`: `architecture` must be one of show-attend-tell, image-transformer. .*='lstm'",
        ),
        ({"architecture": None}, "`architecture` must be one of"),
    ],
)
def test_what_does_not_fit_is_named(tmp_path: Path, changes: dict[str, Any], message: str):
    folder = write_captioning(checkpoint(), tmp_path / "model")
    about = json.loads((folder / ABOUT).read_text()) | changes
    (folder / ABOUT).write_text(json.dumps({k: v for k, v in about.items() if v is not None}))
    with pytest.raises(ValueError, match=message):
        read_captioning(folder)


def test_what_is_no_folder_of_it(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=f"with {ABOUT}. Received: directory="):
        read_captioning(tmp_path)
    (tmp_path / ABOUT).write_text("{")
    with pytest.raises(ValueError, match=ABOUT):
        read_captioning(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "extractor.safetensors"])
def test_every_file_has_a_sum(tmp_path: Path, name: str):
    """A folder whose list of sums lacks a file would be read unchecked."""
    folder = write_captioning(checkpoint(), tmp_path / "model")
    assert name in json.loads((folder / ABOUT).read_text())["sha256"]


def test_a_folder_is_not_replaced_unasked(tmp_path: Path):
    folder = write_captioning(checkpoint(), tmp_path / "model")
    with pytest.raises(FileExistsError):
        write_captioning(checkpoint(b"other"), folder)
    assert read_captioning(folder).subwords == b"pieces"
    write_captioning(checkpoint(b"other"), folder, overwrite=True)
    assert read_captioning(folder).subwords == b"other"
