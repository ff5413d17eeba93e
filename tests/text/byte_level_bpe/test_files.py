"""Files of byte-level BPE: round trips, as published, and errors by their text."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kbert.text.byte_level_bpe import files
from kbert.text.byte_level_bpe.byte_level_bpe import ByteLevelBPE
from tests.text.byte_level_bpe_cases import published, tokenizer, trained, vocabulary_of

MERGES = [("h", "e"), ("t", "he"), ("Ġ", "the")]
VOCABULARY = vocabulary_of(MERGES)
IDS = {token: number for number, token in enumerate(VOCABULARY.tokens)}


def written(
    folder: Path, ids: Any = None, merges: str = "h e\nt he\nĠ the\n"
) -> tuple[Path, Path]:
    vocab, lines = folder / "vocab.json", folder / "merges.txt"
    vocab.write_text(ids if isinstance(ids, str) else json.dumps(ids or IDS), encoding="utf-8")
    lines.write_text(merges, encoding="utf-8")
    return vocab, lines


def tokenizer_json(**changes: Any) -> dict[str, Any]:
    """RoBERTa, as published, with a small vocabulary; "a__b" is the key b of the object a."""
    content: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": [
            {"id": IDS[name], "content": name, "single_word": False, "lstrip": name == "<mask>"}
            | {"rstrip": False, "normalized": False, "special": True}
            for name in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
        ],
        "normalizer": None,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True},
        "post_processor": {"type": "RobertaProcessing", "trim_offsets": True}
        | {"add_prefix_space": False},
        "model": {"dropout": None, "type": "BPE", "vocab": IDS, "merges": ["h e", "t he", "Ġ the"]},
    }
    for path, value in changes.items():
        section, _, key = path.rpartition("__")
        (content[section] if section else content)[key] = value
    return content


def test_files_are_written_as_published_and_read_again(tmp_path: Path) -> None:
    bpe = tokenizer()
    bpe.save(tmp_path / "ours")
    (tmp_path / "theirs").mkdir()
    published(bpe).model.save(str(tmp_path / "theirs"))
    for name in ("vocab.json", "merges.txt"):
        ours, theirs = ((tmp_path / where / name).read_bytes() for where in ("ours", "theirs"))
        assert ours == theirs
    again = ByteLevelBPE.from_files(tmp_path / "ours/vocab.json", tmp_path / "ours/merges.txt")
    assert again.get_config() == bpe.get_config()
    prefixed = ByteLevelBPE.from_contents(bpe.files(), add_prefix_space=True)
    assert prefixed.get_config() == bpe.get_config() | {"add_prefix_space": True}


def test_tokenizer_file_as_published(tmp_path: Path) -> None:
    """The published library writes pairs of tokens as lists, an older one as strings."""
    path = tmp_path / "tokenizer.json"
    for settings in ({}, {"add_prefix_space": True}, {"trim_offsets": False}):
        bpe = tokenizer(**settings)
        published(bpe).save(str(path))
        assert ByteLevelBPE.from_tokenizer_file(path).get_config() == bpe.get_config()
    typed = tokenizer(special_tokens_in_text=True)
    published(typed).save(str(path))
    again = ByteLevelBPE.from_tokenizer_file(path, special_tokens_in_text=True)
    assert again.get_config() == typed.get_config()
    content = json.loads(path.read_text("utf-8"))
    content["model"]["merges"] = [" ".join(pair) for pair in content["model"]["merges"]]
    path.write_text(json.dumps(content))
    assert ByteLevelBPE.from_tokenizer_file(path).merges == tuple(trained()[1])
    given = {"tokenizer.json": path.read_bytes()}
    assert ByteLevelBPE.from_contents(given, trim_offsets=False).trim_offsets is False


def test_tokenizer_file_tells_its_settings(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"

    def read(**changes: Any) -> files.TokenizerFile:
        path.write_text(json.dumps(tokenizer_json(**changes)))
        return files.parse_tokenizer(path.read_bytes(), str(path), True)

    found = read()
    assert found.vocabulary == VOCABULARY and found.merges == MERGES
    assert not found.add_prefix_space and found.trim_offsets
    prefixed = read(pre_tokenizer__add_prefix_space=True, post_processor__add_prefix_space=True)
    assert prefixed.add_prefix_space
    assert not read(post_processor=None).trim_offsets
    assert not read(post_processor={"type": "TemplateProcessing"}).trim_offsets
    lists = read(model__merges=[list(pair) for pair in MERGES])
    assert lists.merges == MERGES
    # An added token that the model's own vocabulary lacks.
    without = {token: number for token, number in IDS.items() if token != "<s>"}
    assert read(model__vocab=without).vocabulary == VOCABULARY


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model__type": "Unigram"}, "with model.type 'BPE'. Received: 'Unigram'"),
        ({"model__type": "WordPiece"}, "with model.type 'BPE'. Received: 'WordPiece'"),
        ({"model": None}, "must have an object 'model'. Received: None"),
        ({"model__byte_fallback": True}, "with model.byte_fallback False. Received: True"),
        ({"model__dropout": 0.1}, "with model.dropout None or 0.0. Received: 0.1"),
        ({"model__ignore_merges": True}, "with model.ignore_merges False. Received: True"),
        (
            {"model__continuing_subword_prefix": "##"},
            "with model.continuing_subword_prefix None or ''. Received: '##'",
        ),
        ({"model__end_of_word_suffix": "</w>"}, "with model.end_of_word_suffix None or ''."),
        ({"normalizer": {"type": "NFC"}}, "with normalizer None. Received: {'type': 'NFC'}"),
        ({"pre_tokenizer": None}, "must have an object 'pre_tokenizer'. Received: None"),
        ({"pre_tokenizer__type": "Metaspace"}, "pre_tokenizer.type 'ByteLevel'. Received: 'Metas"),
        ({"pre_tokenizer__use_regex": False}, "with pre_tokenizer.use_regex True. Received: False"),
        (
            {"post_processor__add_prefix_space": True},
            "with post_processor.add_prefix_space False. Received: True",
        ),
        ({"model__merges": ["h e", "x y"]}, "model.merges must be merges of the vocabulary"),
        ({"model__merges": ["h e", "t h e"]}, "model.merges must have pairs of tokens. Received"),
        ({"added_tokens": [{"id": 0, "content": "<s>"}]}, "no added tokens but special ones."),
        (
            {"added_tokens": [{"id": 4, "content": "<mask>", "special": True}]},
            "of which the mask token alone has lstrip. Received: '<mask>' with {'lstrip': False",
        ),
    ],
)
def test_errors_of_tokenizer_files(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_json(**changes)))
    with pytest.raises(ValueError, match=f"^Tokenizer file {path}.*{re.escape(expected)}"):
        files.parse_tokenizer(path.read_bytes(), str(path), True)


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ("{", "File {file} must be JSON. Received: Expecting property name"),
        ("[1]", "File {file} must be a JSON object. Received: a list"),
        ('{"a": 0, "a": 1}', "File {file} must have each key once. Received: 'a' twice"),
        ({"a": 0, "b": "1"}, "Vocabulary file {file} must have a number for each token. Received"),
        ({"a": 0, "b": 0}, "must have each id once. Received: 0 for 'a' and 'b'"),
        ({"a": 0, "b": 3}, "the ids 0 to 1 of its 2 tokens without a gap. Received: none with"),
        ({"a": 0, "b": 1}, "Vocabulary file {file} must have the tokens <unk>, <s>, </s>, <pad>."),
    ],
)
def test_errors_of_vocabularies(tmp_path: Path, ids: Any, expected: str) -> None:
    vocab, _ = written(tmp_path, ids)
    with pytest.raises(ValueError, match=re.escape(expected.format(file=vocab))):
        files.parse_vocabulary(vocab.read_bytes(), str(vocab))


@pytest.mark.parametrize(
    ("merges", "expected"),
    [
        ("#version: 0.2\nh e\nx y\n", "Received: 'x' 'y' at line 3, and Vocabulary(264 tokens)"),
        ("h e\n\n", "two tokens on each line with a space between them. Received: line 2"),
        ("h e\nt h e\n", "Received: line 2 with 't h e'"),
        ("h e\nt he\nh e", "each pair once. Received: 'h' 'e' at line 1 and again at line 3"),
    ],
)
def test_errors_of_merges(tmp_path: Path, merges: str, expected: str) -> None:
    _, lines = written(tmp_path, merges=merges)
    with pytest.raises(ValueError, match=f"^Merges file {lines} .*{re.escape(expected)}"):
        files.parse_merges(lines.read_bytes(), str(lines), VOCABULARY)


def test_other_errors(tmp_path: Path) -> None:
    vocab, lines = written(tmp_path)
    lines.write_bytes(b"h e\r\nt he\r\n")
    assert files.parse_merges(lines.read_bytes(), str(lines), VOCABULARY) == MERGES[:2]
    lines.write_bytes(b"h e\n\xff e\n")
    with pytest.raises(ValueError, match="must be UTF-8. Received: line 2 with the byte 0xff"):
        files.parse_merges(lines.read_bytes(), str(lines), VOCABULARY)
    none = tmp_path / "none"
    with pytest.raises(FileNotFoundError, match="`vocabulary_file` must be a file. Received: voc"):
        ByteLevelBPE.from_files(none, lines)
    with pytest.raises(FileNotFoundError, match="`merges_file` must be a file. Received: merges_f"):
        ByteLevelBPE.from_files(vocab, none)
    with pytest.raises(FileNotFoundError, match=f"`path` must be a file. Received: path={none}"):
        ByteLevelBPE.from_tokenizer_file(none)
    with pytest.raises(ValueError, match=r"or tokenizer.json. Received: \['vocab.json'\]"):
        ByteLevelBPE.from_contents({"vocab.json": b""})
    few = {token: number for number, token in enumerate(VOCABULARY.tokens[:-4])}
    vocab, lines = written(tmp_path, few, "")
    with pytest.raises(ValueError, match="must have a token for each of the 256 bytes"):
        ByteLevelBPE.from_files(vocab, lines)
