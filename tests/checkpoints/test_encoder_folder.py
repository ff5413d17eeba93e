import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from kbert.checkpoints.encoder_folder import read_native, write_native
from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from kbert.pipelines.tokenizers import tokenizer_of
from tests.checkpoints.synthetic_bert import hf_tensors, same_bytes, write_hf

HEADS = {"classifier.weight": (3, 4), "classifier.bias": (3,)}


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_round_trip_keeps_everything(tmp_path: Path, dtype: str) -> None:
    tensors = hf_tensors(dtype, "bert.", heads=HEADS)
    source = write_hf(
        tmp_path / "bert-cased", tensors, architectures=["BertForSequenceClassification"], mine=1
    )
    before = read_huggingface(source)
    write_native(before, tmp_path / "own")
    files = sorted(path.name for path in (tmp_path / "own").iterdir())
    assert files == ["kbert.json", "model.safetensors", "vocabulary.txt"]
    after = read_native(tmp_path / "own")
    assert after.config == before.config
    assert after.source_config == before.source_config
    assert after.lowercase is before.lowercase is False
    assert after.vocabulary_bytes() == before.vocabulary_bytes()
    assert after.format == "kbert"
    for a, b in ((after.arrays, before.arrays), (after.heads, before.heads)):
        assert a.keys() == b.keys() and all(same_bytes(a[name], b[name]) for name in b)
    # And out again, byte for byte.
    write_huggingface(after, tmp_path / "hf")
    written = load_file(tmp_path / "hf" / "model.safetensors")
    assert written.keys() == tensors.keys()
    assert all(same_bytes(written[name], tensors[name]) for name in tensors)


def test_a_folder_can_be_rewritten_from_itself(tmp_path: Path) -> None:
    write_native(read_huggingface(write_hf(tmp_path / "a", hf_tensors())), tmp_path / "own")
    checkpoint = read_native(tmp_path / "own")
    with pytest.raises(FileExistsError, match="must not exist yet, unless overwrite=True"):
        write_native(checkpoint, tmp_path / "own")
    write_native(checkpoint, tmp_path / "own", overwrite=True)
    assert read_native(tmp_path / "own").vocabulary_path == tmp_path / "own" / "vocabulary.txt"


def _written(folder: Path) -> Path:
    checkpoint = read_huggingface(write_hf(folder / "source", hf_tensors(pooler=False)))
    return write_native(checkpoint, folder / "own")


def test_errors_of_the_configuration(tmp_path: Path) -> None:
    folder = _written(tmp_path)
    path = folder / "kbert.json"
    good = json.loads(path.read_text())
    path.write_text(json.dumps(good | {"format_version": 2}))
    with pytest.raises(ValueError, match="`format_version` must be 1.*format_version=2"):
        read_native(folder)
    path.write_text(json.dumps(good | {"config": good["config"] | {"hiden_dim": 4}}))
    with pytest.raises(ValueError, match="Received: 'hiden_dim'. Did you mean `hidden_dim`?"):
        read_native(folder)
    del good["lowercase"]
    path.write_text(json.dumps(good))
    with pytest.raises(ValueError, match="Missing: lowercase"):
        read_native(folder)


def test_weights_that_do_not_fit(tmp_path: Path) -> None:
    checkpoint = read_native(_written(tmp_path))
    assert not checkpoint.has_pooler
    checkpoint.arrays["embeddings/layer_norm/gamma"] = np.zeros(5, np.float32)
    checkpoint.arrays["extra"] = np.zeros(1, np.float32)
    with pytest.raises(ValueError) as error:
        write_native(checkpoint, tmp_path / "b")
    assert "not known: extra;" in str(error.value)
    assert "embeddings/layer_norm/gamma (expected (4,), found (5,))" in str(error.value)
    assert not (tmp_path / "b").exists()


def test_the_architecture(tmp_path: Path) -> None:
    folder = _written(tmp_path)
    path = folder / "kbert.json"
    about = json.loads(path.read_text())
    assert about.pop("architecture") == "bert"
    path.write_text(json.dumps(about))  # as folders were written before
    assert read_native(folder).architecture == "bert"
    path.write_text(json.dumps(about | {"architecture": "gpt"}))
    message = "kbert.json`: `architecture` must be one of bert.* Received: architecture='gpt'"
    with pytest.raises(ValueError, match=message):
        read_native(folder)


def test_a_tokenizer_that_is_not_read(tmp_path: Path) -> None:
    source = write_hf(tmp_path / "source", hf_tensors())
    settings = {"word_tokenizer_type": "mecab"}
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    write_native(read_huggingface(source), tmp_path / "own")
    checkpoint = read_native(tmp_path / "own")
    assert checkpoint.vocabulary_path is not None
    with pytest.raises(ValueError, match="Received: .* word_tokenizer_type 'mecab', which is not"):
        tokenizer_of(checkpoint)
