"""The one entry; TF1 and Model Garden are read through it in their own tests."""

from pathlib import Path

import pytest

from kbert.checkpoints.encoder_folder import write_native
from kbert.checkpoints.read_checkpoint import read_checkpoint
from tests.checkpoints.synthetic_bert import CONFIG, hf_tensors, write_hf


def test_hugging_face_and_kbert(tmp_path: Path) -> None:
    first = read_checkpoint(write_hf(tmp_path / "a", hf_tensors()))
    assert (first.format, first.config) == ("huggingface", CONFIG)
    second = read_checkpoint(str(write_native(first, tmp_path / "b")))
    assert (second.format, second.config) == ("kbert", CONFIG)
    assert read_checkpoint(tmp_path / "b" / "kbert.json").format == "kbert"


def test_a_name(minilm_directory: Path) -> None:
    checkpoint = read_checkpoint("all-MiniLM-L6-v2")
    assert checkpoint.config["num_layers"] == 6
    assert checkpoint.config["hidden_dim"] == 384
    assert checkpoint.lowercase is True
    assert checkpoint.vocabulary_path == minilm_directory / "vocab.txt"


def test_an_unknown_name() -> None:
    with pytest.raises(FileNotFoundError, match="must be a path that exists, a known name"):
        read_checkpoint("no-such-model")
