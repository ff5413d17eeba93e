"""The files of a byte-level BPE: which are taken, and that they survive every folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from kbert.checkpoints.arrays.tokenizer_files import (
    byte_level_files,
    byte_level_files_of,
    tokenizer_fields,
)
from kbert.checkpoints.encoder_folder import read_native, write_native
from kbert.checkpoints.huggingface_files import read_huggingface, write_huggingface
from kbert.checkpoints.tensorflow.tf1_bert import write_tf1_bert
from kbert.models.roberta import Roberta
from tests.checkpoints.synthetic_bert import hf_tensors, write_hf

# White space and the order of keys are the file's own.
FILES = {
    "vocab.json": b'{"<s>":0, "<pad>":1,"</s>":2,"<unk>":3,"a":4,"b":5,"ab":6,"<mask>":7}',
    "merges.txt": b"#version: 0.2\na b\n",
}
BPE = {"model": {"type": "BPE", "vocab": {}, "merges": []}}


def _written(folder: Path, files: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        content = content if isinstance(content, bytes) else json.dumps(content).encode()
        (folder / name).write_bytes(content)
    return folder


def test_which_files_are_taken(tmp_path: Path) -> None:
    both = _written(tmp_path / "both", {**FILES, "tokenizer.json": BPE})
    assert byte_level_files(both) == FILES
    one = _written(tmp_path / "one", {"tokenizer.json": BPE})
    assert byte_level_files(one) == {"tokenizer.json": json.dumps(BPE).encode()}
    # With half of the pair, the whole file counts.
    _written(one, {"vocab.json": FILES["vocab.json"]})
    assert list(byte_level_files(one)) == ["tokenizer.json"]
    other = {"model": {"type": "WordPiece", "vocab": {"[PAD]": 0}}}
    assert not byte_level_files(_written(tmp_path / "wordpiece", {"tokenizer.json": other}))
    assert not byte_level_files(_written(tmp_path / "none", {}))


@pytest.mark.parametrize("name", FILES)
def test_one_file_without_the_other(tmp_path: Path, name: str) -> None:
    folder = _written(tmp_path / "model", {name: FILES[name]})
    message = rf"must have both vocab.json and merges.txt, .* Received: {name} alone"
    with pytest.raises(ValueError, match=message):
        byte_level_files(folder)


def test_more_tokens_than_rows(tmp_path: Path) -> None:
    message = "must have at most as many tokens as .* Received: 8 tokens, 7 rows"
    pair = _written(tmp_path / "pair", FILES)
    one = _written(tmp_path / "one", {"tokenizer.json": {"model": {
        "type": "BPE", "vocab": json.loads(FILES["vocab.json"]), "merges": []
    }}})
    for folder, name in ((pair, "vocab.json"), (one, "tokenizer.json")):
        assert tokenizer_fields(folder, {}, 8, [])["tokenizer_files"]
        assert list(byte_level_files_of(folder / name, 8))[0] == name
        with pytest.raises(ValueError, match=message):
            tokenizer_fields(folder, {}, 7, [])
        with pytest.raises(ValueError, match=message):
            byte_level_files_of(folder / name, 7)


def test_an_encoder_is_saved_with_the_file_that_is_given(tmp_path: Path) -> None:
    encoder = Roberta.from_size("tiny", 8, num_layers=1)
    source = _written(tmp_path / "source", FILES)
    folder = encoder.save_pretrained(tmp_path / "model", vocabulary=source / "vocab.json")
    assert byte_level_files(folder) == FILES and not read_native(folder).lowercase
    with pytest.raises(FileNotFoundError, match="`path` must be a vocabulary file"):
        encoder.save_pretrained(tmp_path / "none", vocabulary=source / "none.json")
    (source / "merges.txt").unlink()
    with pytest.raises(ValueError, match="must have both vocab.json and merges.txt"):
        encoder.save_pretrained(tmp_path / "half", vocabulary=source / "vocab.json")


def test_settings(tmp_path: Path) -> None:
    tokenizer = {
        **BPE,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False},
        "post_processor": {"type": "RobertaProcessing", "trim_offsets": False},
    }
    folder = _written(tmp_path, {**FILES, "tokenizer.json": tokenizer})
    report: list[str] = []
    found = tokenizer_fields(folder, {}, 8, report)
    assert found["tokenizer_rules"] == {"add_prefix_space": False, "trim_offsets": False}
    assert found["lowercase"] is False and found["tokenizer_files"] == FILES
    assert report == ["The tokenizer is a byte-level BPE, from vocab.json and merges.txt."]
    _written(folder, {"tokenizer_config.json": {"add_prefix_space": True, "trim_offsets": True}})
    rules = tokenizer_fields(folder, {}, 8, [])["tokenizer_rules"]
    assert rules == {"add_prefix_space": True, "trim_offsets": True}


def test_files_survive_folders(tmp_path: Path) -> None:
    source = _written(write_hf(tmp_path / "model", hf_tensors()), FILES)
    _written(source, {"tokenizer_config.json": {"add_prefix_space": True}})
    checkpoint = read_huggingface(source)
    assert checkpoint.has_vocabulary and checkpoint.vocabulary_bytes() is None
    kept = read_native(write_native(checkpoint, tmp_path / "kbert"))
    assert kept.tokenizer_files == FILES and not kept.lowercase
    assert kept.tokenizer_rules == {"add_prefix_space": True}
    again = write_huggingface(kept, tmp_path / "hf")
    assert byte_level_files(again) == FILES
    assert not (again / "vocab.txt").exists()
    config = json.loads((again / "tokenizer_config.json").read_text())
    assert (config["tokenizer_class"], config["add_prefix_space"]) == ("RobertaTokenizer", True)
    with pytest.raises(ValueError, match="`format` must be .* for a byte-level BPE. Received: voc"):
        write_tf1_bert(kept, tmp_path / "tf1")


def test_added_tokens(tmp_path: Path) -> None:
    folder = _written(tmp_path, {**FILES, "added_tokens.json": {"<user>": 8}})
    assert tokenizer_fields(folder, {}, 9, [])["unread_tokenizer"] == "added tokens, '<user>'"
    (folder / "added_tokens.json").unlink()
    assert tokenizer_fields(folder, {}, 9, [])["unread_tokenizer"] is None


def test_positions_of_roberta_are_counted_by_the_id_of_the_padding(tmp_path: Path) -> None:
    encoder = Roberta.from_size("tiny", 8, num_layers=1)
    (tmp_path / "vocab.json").write_bytes(FILES["vocab.json"])
    (tmp_path / "merges.txt").write_bytes(FILES["merges.txt"])
    encoder.save_pretrained(tmp_path / "1", "huggingface", vocabulary=tmp_path / "vocab.json")
    others = FILES["vocab.json"].replace(b'"<s>":0, "<pad>":1', b'"<pad>":0, "<s>":1')
    (tmp_path / "vocab.json").write_bytes(others)
    with pytest.raises(ValueError, match="the padding token at 1 in .*. Received: <pad> at 0"):
        encoder.save_pretrained(tmp_path / "2", "huggingface", vocabulary=tmp_path / "vocab.json")
    encoder.save_pretrained(tmp_path / "3", vocabulary=tmp_path / "vocab.json")
