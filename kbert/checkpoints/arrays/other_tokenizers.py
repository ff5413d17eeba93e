"""Checks for tokenizers of a source that are others than kbert's, which does not read them."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

from kbert.storage.json_files import read_json_object

CONFIG = "tokenizer_config.json"
TOKENIZER = "tokenizer.json"
MERGES = "merges.txt"
# Tokens that were added to a vocabulary, with their ids.
ADDED = "added_tokens.json"
_SHOWN = 5
# What ends words in the BPE of Sennrich et al. 2016, which has no bytes.
_END_OF_WORD = b"</w>"
_BYTE_LEVEL = "ByteLevel"
# Settings that, with other values, make another tokenizer than BERT's.
_OF_WORDPIECE: dict[str, dict[str, Any]] = {
    CONFIG: {
        "do_basic_tokenize": True,
        "word_tokenizer_type": "basic",
        "subword_tokenizer_type": "wordpiece",
    },
    TOKENIZER: {
        "model": "WordPiece",
        "normalizer": "BertNormalizer",
        "pre_tokenizer": "BertPreTokenizer",
    },
}
# Values of parts of `tokenizer.json` that kbert's WordPiece has too, and no others.
_IN_WORDPIECE: dict[tuple[str, str], Any] = {
    ("normalizer", "clean_text"): True,
    ("model", "max_input_chars_per_word"): 100,
    ("model", "continuing_subword_prefix"): "##",
}


def other_wordpiece(directory: Path) -> str | None:
    """Returns a setting that makes a tokenizer another one than BERT's WordPiece."""
    for name, settings in _OF_WORDPIECE.items():
        read = read_if_there(directory / name)
        for key, usual in settings.items():
            given = read.get(key, usual)
            if name == TOKENIZER:  # a part with its type
                given = given.get("type", usual) if isinstance(given, dict) else given
            if given != usual and not (name == CONFIG and given is None):
                return f"{name} with {key} {given!r}"
    read = read_if_there(directory / TOKENIZER)
    for (section, key), usual in _IN_WORDPIECE.items():
        given = (read.get(section) or {}).get(key, usual)
        if given != usual:
            return f"{TOKENIZER} with {section}.{key} {given!r}"
    return None


def other_byte_level(directory: Path) -> str | None:
    """Returns what makes `vocab.json` and `merges.txt` those of another BPE than GPT-2's."""
    if _END_OF_WORD in (directory / MERGES).read_bytes():
        return f"{MERGES} with {_END_OF_WORD.decode()}"
    read = read_if_there(directory / TOKENIZER)
    if read.get("normalizer") is not None:
        return f"{TOKENIZER} with a normalizer"
    kind = (read.get("pre_tokenizer") or {}).get("type", _BYTE_LEVEL)
    return None if kind == _BYTE_LEVEL else f"{TOKENIZER} with the pre-tokenizer {kind}"


def added_tokens(directory: Path, vocabulary: Collection[str]) -> str | None:
    """Returns tokens that the source finds whole in texts, and kbert would not."""
    told = read_if_there(directory / TOKENIZER).get("added_tokens", [])
    plain = {one["content"] for one in told if not one.get("special", False)}
    every = {one["content"] for one in told}.union(read_if_there(directory / ADDED))
    unread = sorted(plain | (every - set(vocabulary)))
    shown = ", ".join(map(repr, unread[:_SHOWN])) + (", ..." if len(unread) > _SHOWN else "")
    return f"added tokens, {shown}" if unread else None


def read_if_there(path: Path) -> dict[str, Any]:
    """Returns the object of a JSON file, {} where there is no file."""
    return read_json_object(path) if path.is_file() else {}
