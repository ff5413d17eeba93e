"""Who decides, in order: each case leaves the stronger ones out."""

import json
from pathlib import Path
from typing import Any

import pytest

from kbert.checkpoints.arrays.tokenizer_files import (
    resolve_lowercase,
    tokenizer_fields,
    tokenizer_rules,
)


def _folder(path: Path, **files: Any) -> Path:
    path.mkdir(parents=True)
    for name, value in files.items():
        (path / f"{name}.json").write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("value", [True, False])
def test_the_order(tmp_path: Path, value: bool) -> None:
    name = "bert-uncased" if value else "bert-cased"
    opposite = {"normalizer": {"lowercase": not value}}
    folder = _folder(tmp_path / "1", tokenizer_config={"do_lower_case": value}, tokenizer=opposite)
    config = {"do_lower_case": not value}
    assert resolve_lowercase(folder, config)[0] is value
    same = {"normalizer": {"lowercase": value}}
    folder = _folder(tmp_path / "2", tokenizer_config={"do_lower_case": None}, tokenizer=same)
    assert resolve_lowercase(folder, config) == (value, f"lowercase={value}, from tokenizer.json.")
    folder = _folder(tmp_path / ("x-cased" if value else "x-uncased"))
    assert resolve_lowercase(folder, {"do_lower_case": value})[0] is value
    folder = _folder(tmp_path / name)
    found = resolve_lowercase(folder, {"_name_or_path": "x"}, ["A" if value else "a"])
    assert found == (value, f"lowercase={value}, from the name '{name}'.")


def test_the_name_in_the_cache_of_the_hub_or_in_the_configuration(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "models--google-bert--bert-base-cased" / "snapshots" / "0f3c")
    assert resolve_lowercase(folder)[0] is False
    folder = _folder(tmp_path / "x")
    assert resolve_lowercase(folder, {"_name_or_path": "nreimers/MiniLM-uncased"})[0] is True


def test_the_vocabulary_and_the_default(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "model")
    found = resolve_lowercase(folder, {}, ["[CLS]", "a", "##B"])
    assert found == (False, "lowercase=False, from capital letters in the vocabulary.")
    found = resolve_lowercase(folder, {}, ["[CLS]", "[UNK]", "<S>", "a", "é"])
    assert found == (True, "lowercase=True, from the default, as nothing says otherwise.")


def test_minilm(minilm_directory: Path) -> None:
    assert resolve_lowercase(minilm_directory)[1] == "lowercase=True, from tokenizer_config.json."


def test_the_rules_beside_it(tmp_path: Path) -> None:
    assert tokenizer_rules(_folder(tmp_path / "1")) == {}
    config = {"strip_accents": None, "tokenize_chinese_chars": False}
    normalizer = {"strip_accents": False, "handle_chinese_chars": True}
    folder = _folder(tmp_path / "2", tokenizer_config=config, tokenizer={"normalizer": normalizer})
    assert tokenizer_rules(folder) == {"strip_accents": False, "handle_cjk": False}


def test_settings_that_are_bert_s(tmp_path):
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    settings = {"do_basic_tokenize": True, "word_tokenizer_type": None, "strip_accents": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    parts = {"normalizer": {"type": "BertNormalizer"}, "model": {"type": "WordPiece"}}
    added = {"added_tokens": [{"content": "[UNK]", "special": True}]}
    (tmp_path / "tokenizer.json").write_text(json.dumps({**parts, **added}))
    assert tokenizer_fields(tmp_path, {}, 10, [])["unread_tokenizer"] is None
