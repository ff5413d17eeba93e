"""The files of byte-level BPE: `vocab.json` with `merges.txt`, and `tokenizer.json`.

They are read as Hugging Face `tokenizers` reads them; what it has and kbert has not is refused.
"""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from kbert.text.byte_level_bpe.merge_table import merges_of
from kbert.text.vocabulary import ROBERTA_TOKENS, Vocabulary, decoded

VOCABULARY_FILE, MERGES_FILE, TOKENIZER_FILE = "vocab.json", "merges.txt", "tokenizer.json"
_HEADER = "#version"
_PAIR = 2  # tokens
# Settings of a BPE in a `tokenizer.json`, and their values here, the first of which is the default.
_MODEL_SETTINGS: dict[str, tuple[Any, ...]] = {
    "type": ("BPE",),
    "dropout": (None, 0.0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (False,),
    "ignore_merges": (False,),
}


class TokenizerFile(NamedTuple):
    """Contents of a `tokenizer.json`."""

    vocabulary: Vocabulary
    merges: list[tuple[str, ...]]
    add_prefix_space: bool
    trim_offsets: bool


def content_of(path: str | os.PathLike[str], argument: str) -> bytes:
    """Returns the bytes of a file; raises FileNotFoundError with the name of the argument."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"`{argument}` must be a file. Received: {argument}={path}")
    return Path(path).read_bytes()


def parse_vocabulary(content: bytes, file: str) -> Vocabulary:
    """Parses a `vocab.json`; raises a ValueError that names the file."""
    return _vocabulary(_parse_json(content, file), f"Vocabulary file {file}")


def parse_merges(content: bytes, file: str, vocabulary: Vocabulary) -> list[tuple[str, ...]]:
    """Parses a `merges.txt` of this vocabulary; errors name the file and the line."""
    lines = decoded(content, f"File {file}").split("\n")
    if lines[-1] == "":
        lines.pop()  # after the last line end
    first = 2 if lines and lines[0].startswith(_HEADER) else 1
    merges = []
    for number, line in enumerate(lines[first - 1 :], first):
        merges.append(tuple(line.removesuffix("\r").split(" ")))
        if len(merges[-1]) != _PAIR or not all(merges[-1]):
            raise ValueError(
                f"Merges file {file} must have two tokens on each line with a space between them. "
                f"Received: line {number} with {line!r}"
            )
    merges_of(vocabulary, merges, f"Merges file {file}", "line", first)
    return merges


def parse_tokenizer(content: bytes, file: str, special_tokens_in_text: bool) -> TokenizerFile:
    """Parses a `tokenizer.json`; raises a ValueError that names the file."""
    sections = _parse_json(content, file)
    where = f"Tokenizer file {file}"
    model = _section(sections, "model", where)
    _check(where, "model.type", model.get("type"), _MODEL_SETTINGS["type"])
    for key, allowed in _MODEL_SETTINGS.items():
        _check(where, f"model.{key}", model.get(key, allowed[0]), allowed)
    _check(where, "normalizer", sections.get("normalizer"), (None,))
    before = _section(sections, "pre_tokenizer", where)
    _check(where, "pre_tokenizer.type", before.get("type"), ("ByteLevel",))
    _check(where, "pre_tokenizer.use_regex", before.get("use_regex", True), (True,))
    add_prefix_space = bool(before.get("add_prefix_space", True))
    after = sections.get("post_processor") or {}
    trims = after.get("type") in ("RobertaProcessing", "ByteLevel")
    trim_offsets = trims and bool(after.get("trim_offsets", True))
    if trim_offsets:
        both = after.get("add_prefix_space", True)
        _check(where, "post_processor.add_prefix_space", both, (add_prefix_space,))
    added = sections.get("added_tokens") or []
    ids = dict(_section(model, "vocab", where))
    ids.update({one["content"]: one["id"] for one in added})
    vocabulary = _vocabulary(ids, where)
    _check_added(where, added, vocabulary, special_tokens_in_text)
    merges = [
        tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge)
        for merge in model.get("merges", [])
    ]
    try:
        merges_of(vocabulary, merges, f"{where}: model.merges", "index", 0)
    except TypeError as error:
        raise ValueError(str(error)) from error
    return TokenizerFile(vocabulary, merges, add_prefix_space, trim_offsets)


def contents(vocabulary: Vocabulary, merges: Iterable[Sequence[str]]) -> dict[str, bytes]:
    """Returns a `vocab.json` and a `merges.txt`, by their names."""
    ids = {token: number for number, token in enumerate(vocabulary.tokens)}
    text = json.dumps(ids, ensure_ascii=False, separators=(",", ":"))
    lines = [f"{_HEADER}: 0.2", *(" ".join(merge) for merge in merges)]
    merged = "".join(f"{line}\n" for line in lines)
    return {VOCABULARY_FILE: text.encode(), MERGES_FILE: merged.encode()}


def _parse_json(content: bytes, file: str) -> dict[str, Any]:
    """Parses an object; a ValueError says that there is none, or which key it has twice."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for index, key in enumerate(keys) if key in keys[:index])
            raise ValueError(f"File {file} must have each key once. Received: {twice!r} twice")
        return found

    try:
        parsed = json.loads(decoded(content, f"File {file}"), object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise ValueError(f"File {file} must be JSON. Received: {error}") from error
    if not isinstance(parsed, dict):
        raise ValueError(f"File {file} must be a JSON object. Received: a {type(parsed).__name__}")
    return parsed


def _vocabulary(ids: dict[str, Any], where: str) -> Vocabulary:
    """Makes the vocabulary of tokens with ids, which are 0, 1, 2 and so on without a gap."""
    tokens: dict[int, str] = {}
    for token, number in ids.items():
        if not isinstance(number, int) or isinstance(number, bool):
            raise ValueError(
                f"{where} must have a number for each token. Received: {token!r} with {number!r}"
            )
        if number in tokens:
            raise ValueError(
                f"{where} must have each id once. Received: {number} for {tokens[number]!r} and "
                f"{token!r}"
            )
        tokens[number] = token
    gaps = sorted(set(range(len(tokens))) - tokens.keys())
    if gaps:
        raise ValueError(
            f"{where} must have the ids 0 to {len(tokens) - 1} of its {len(tokens)} tokens without "
            f"a gap. Received: none with the id {gaps[0]}, and the highest one {max(tokens)}"
        )
    try:
        return Vocabulary([tokens[number] for number in range(len(tokens))], ROBERTA_TOKENS)
    except ValueError as error:
        raise ValueError(str(error).replace("`tokens`", where, 1)) from error


def _section(content: dict[str, Any], key: str, where: str) -> dict[str, Any]:
    section = content.get(key)
    if not isinstance(section, dict):
        raise ValueError(f"{where} must have an object {key!r}. Received: {section!r}")
    return section


def _check(where: str, key: str, value: Any, allowed: tuple[Any, ...]) -> None:
    if value not in allowed:
        expected = " or ".join(map(repr, allowed))
        raise ValueError(
            f"{where} must be of a byte-level BPE as RoBERTa's, with {key} {expected}. "
            f"Received: {value!r}"
        )


def _check_added(
    where: str, added: list[Any], vocabulary: Vocabulary, special_tokens_in_text: bool
) -> None:
    """Refuses added tokens that the reference would find in a text, and kbert would not."""
    for one in added:
        token = one["content"]
        if not one.get("special", False):
            raise ValueError(
                f"{where} must have no added tokens but special ones. Received: {token!r}"
            )
        if not special_tokens_in_text:
            continue
        is_mask = token == vocabulary.special_tokens.mask
        expected = {"lstrip": is_mask, "rstrip": False, "single_word": False}
        settings = {key: one.get(key, False) for key in expected}
        if not vocabulary.is_special(token) or settings != expected:
            raise ValueError(
                f"{where} must have RoBERTa's special tokens for `special_tokens_in_text`, "
                f"{', '.join(vocabulary.special_tokens.names)}, of which the mask token alone has "
                f"lstrip. Received: {token!r} with {settings}"
            )
