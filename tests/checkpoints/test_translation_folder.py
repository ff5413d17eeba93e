"""Folders of translation models, as bytes and arrays."""

import json

import numpy as np
import pytest

from kbert.checkpoints.read_checkpoint import is_translation
from kbert.checkpoints.translation_folder import (
    TranslationCheckpoint,
    read_translation,
    write_translation,
)
from tests.small_bert import small_bert

ARRAYS = {"a/kernel": np.arange(6, dtype="float32").reshape(2, 3), "b": np.ones(2, "float16")}


def checkpoint(target=b"target"):
    return TranslationCheckpoint({"hidden_dim": 3}, ARRAYS, b"source", target, {"alpha": 0.5})


@pytest.mark.parametrize("target", [b"source", b"target"])
def test_all_of_it_comes_back(tmp_path, target):
    folder = write_translation(checkpoint(target), tmp_path / "model")
    assert is_translation(folder) and not is_translation(tmp_path)
    names = {"kbert_translation.json", "model.safetensors", "source.model"}
    names |= {"target.model"} if target != b"source" else set()
    assert {file.name for file in folder.iterdir()} == names
    again = read_translation(folder)
    assert again.transformer == {"hidden_dim": 3} and again.settings == {"alpha": 0.5}
    assert (again.source_subwords, again.target_subwords) == (b"source", target)
    assert again.bert is None
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(again.arrays[name], array)
        assert again.arrays[name].dtype == array.dtype


@pytest.mark.parametrize("name", ["model.safetensors", "source.model", "target.model"])
def test_a_changed_or_missing_file_is_named(tmp_path, name):
    folder = write_translation(checkpoint(), tmp_path / "model")
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-1] + b"\7")
    with pytest.raises(ValueError, match=name):
        read_translation(folder)
    (folder / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        read_translation(folder)


def test_a_folder_is_not_replaced_unasked(tmp_path):
    folder = write_translation(checkpoint(), tmp_path / "model")
    with pytest.raises(FileExistsError):
        write_translation(checkpoint(b"other"), folder)
    assert read_translation(folder).target_subwords == b"target"
    write_translation(checkpoint(b"other"), folder, overwrite=True)
    assert read_translation(folder).target_subwords == b"other"


@pytest.mark.parametrize("architecture", ["transformer", "bert-fused"])
def test_the_architecture(tmp_path, architecture):
    one = checkpoint()
    one.architecture = architecture
    if architecture == "bert-fused":
        one.bert = small_bert().to_checkpoint()
    folder = write_translation(one, tmp_path / "model")
    file = folder / "kbert_translation.json"
    about = json.loads(file.read_text())
    assert about.pop("architecture") == architecture
    file.write_text(json.dumps(about))  # as folders were written before
    assert read_translation(folder).architecture == architecture
    file.write_text(json.dumps({**about, "architecture": "lstm"}))
    message = "json`: `architecture` must be one of transformer, bert-fused, .* Received: .*'lstm'"
    with pytest.raises(ValueError, match=message):
        read_translation(folder)
