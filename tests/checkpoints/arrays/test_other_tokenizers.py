"""Tokenizers of other packages that split texts otherwise, by their files."""

import json
from pathlib import Path
from typing import Any

import pytest

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.tokenizer_files import tokenizer_fields
from kbert.pipelines.tokenizers import tokenizer_of
from tests.checkpoints.arrays.test_tokenizer_files_byte_level import BPE, FILES, _written


@pytest.mark.parametrize(
    "name, content, told",
    [
        (
            "tokenizer_config.json",
            {"word_tokenizer_type": "mecab", "do_lower_case": False},
            "tokenizer_config.json with word_tokenizer_type 'mecab'",
        ),
        ("tokenizer_config.json", {"do_basic_tokenize": False}, "with do_basic_tokenize False"),
        ("tokenizer.json", {"model": {"type": "WordLevel"}}, "tokenizer.json with model 'WordLev"),
        ("tokenizer.json", {"normalizer": None}, "tokenizer.json with normalizer None"),
        ("tokenizer.json", {"pre_tokenizer": {"type": "Whitespace"}}, "pre_tokenizer 'Whitespace'"),
        (
            "tokenizer.json",
            {"normalizer": {"type": "BertNormalizer", "clean_text": False}},
            "tokenizer.json with normalizer.clean_text False",
        ),
        (
            "tokenizer.json",
            {"model": {"type": "WordPiece", "continuing_subword_prefix": ""}},
            "tokenizer.json with model.continuing_subword_prefix ''",
        ),
        ("added_tokens.json", {"<user>": 9}, "added tokens, '<user>'"),
        ("tokenizer.json", {"added_tokens": [{"content": "a"}]}, "added tokens, 'a'"),
    ],
)
def test_another_tokenizer_than_bert_s(tmp_path, name, content, told):
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    (tmp_path / name).write_text(json.dumps(content))
    fields = tokenizer_fields(tmp_path, {}, 10, report := [])
    assert told in fields["unread_tokenizer"] and told in report[0]
    with pytest.raises(ValueError, match="tokenizer that kbert has, WordPiece or byte-level BPE"):
        tokenizer_of(Checkpoint({}, {}, **fields))


@pytest.mark.parametrize(
    "files, told",
    [
        ({"tokenizer.json": {**BPE, "normalizer": {"type": "Lowercase"}}}, "a normalizer"),
        (
            {"tokenizer.json": {**BPE, "pre_tokenizer": {"type": "Whitespace"}}},
            "the pre-tokenizer Whitespace",
        ),
        ({"merges.txt": b"#version: 0.2\na b</w>\n"}, "merges.txt with </w>"),
    ],
)
def test_another_bpe_than_gpt_2_s(tmp_path: Path, files: dict[str, Any], told: str) -> None:
    folder = _written(tmp_path, {**FILES, **files})
    assert told in tokenizer_fields(folder, {}, 9, [])["unread_tokenizer"]
    good = {"tokenizer.json": {**BPE, "normalizer": None, "pre_tokenizer": {"type": "ByteLevel"}}}
    folder = _written(tmp_path, {**FILES, **good})
    assert tokenizer_fields(folder, {}, 9, [])["unread_tokenizer"] is None
