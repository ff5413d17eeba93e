"""The text side of a checkpoint, by the files beside its weights: vocabulary, casing, rules.

A WordPiece vocabulary is one token per line of a file, or stands in `tokenizer.json`; a byte-level
BPE is `vocab.json` and `merges.txt`, or `tokenizer.json`.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.other_tokenizers import (
    CONFIG,
    MERGES,
    TOKENIZER,
    added_tokens,
    other_byte_level,
    other_wordpiece,
    read_if_there,
)
from kbert.storage.json_files import read_json_object

# The SentencePiece model of encoders that have no vocab.txt.
PIECES = "spiece.model"
# Of a byte-level BPE, beside MERGES.
VOCABULARY = "vocab.json"
# The tokenizer's files, of which the later one counts: (section and) key -> our rule.
_RULES: dict[str, dict[tuple[str, ...], str]] = {
    TOKENIZER: {
        ("normalizer", "lowercase"): "lowercase",
        ("normalizer", "strip_accents"): "strip_accents",
        ("normalizer", "handle_chinese_chars"): "handle_cjk",
        ("pre_tokenizer", "add_prefix_space"): "add_prefix_space",
        ("post_processor", "trim_offsets"): "trim_offsets",
    },
    CONFIG: {
        ("do_lower_case",): "lowercase",
        ("strip_accents",): "strip_accents",
        ("tokenize_chinese_chars",): "handle_cjk",
        ("add_prefix_space",): "add_prefix_space",
        ("trim_offsets",): "trim_offsets",
    },
}


def tokenizer_fields(
    directory: Path, config: Mapping[str, Any], vocabulary_size: int, report: list[str]
) -> dict[str, Any]:
    """Reads the text side of a checkpoint: the fields of `Checkpoint`, and notes for its report.

    `config` is the raw configuration, and `vocabulary_size` the number of rows of the token
    embedding. A byte-level BPE comes before a `vocab.txt`.

    Raises:
        ValueError: there are more tokens than rows, or a file is damaged, or lacks its other half.
    """
    rules = tokenizer_rules(directory)
    files = byte_level_files(directory)
    if files:
        _check_size(directory / next(iter(files)), vocabulary_size)
        report.append(f"The tokenizer is a byte-level BPE, from {' and '.join(files)}.")
        unread = None
        if VOCABULARY in files:  # a `tokenizer.json` alone is checked as it is parsed
            unread = other_byte_level(directory)
            unread = unread or added_tokens(directory, read_json_object(directory / VOCABULARY))
        fields = {"tokenizer_files": files, "tokenizer_rules": rules, "unread_tokenizer": unread}
        return {**fields, "lowercase": False}
    path, tokens = find_vocabulary(directory, vocabulary_size)
    if tokens is not None:
        unread = other_wordpiece(directory) or added_tokens(directory, tokens)
        if unread is not None:
            report.append(f"The tokenizer is another one than kbert's, by {unread}.")
    else:
        unread = f"{PIECES}, of SentencePiece" if (directory / PIECES).is_file() else None
        report.append("The source has no vocabulary" + (f" but {PIECES}." if unread else "."))
    lowercase, reason = resolve_lowercase(directory, config, tokens)
    report.append(reason)
    return {
        "vocabulary_path": path,
        "vocabulary_tokens": tokens if path is None else None,
        "lowercase": lowercase,
        "tokenizer_rules": rules,
        "unread_tokenizer": unread,
    }


def byte_level_files(directory: Path) -> dict[str, bytes]:
    """Returns the files of a byte-level BPE by their names; none where there is none.

    Raises:
        ValueError: one of `vocab.json` and `merges.txt` lacks the other.
    """
    there = [name for name in (VOCABULARY, MERGES) if (directory / name).is_file()]
    if len(there) == 2:
        return {name: (directory / name).read_bytes() for name in there}
    path = directory / TOKENIZER
    model = read_json_object(path).get("model") if path.is_file() else None
    if isinstance(model, dict) and model.get("type") == "BPE":
        return {TOKENIZER: path.read_bytes()}
    if there:
        raise _half(directory, there[0])
    return {}


def resolve_lowercase(
    directory: Path, config: Mapping[str, Any] | None = None, tokens: Sequence[str] | None = None
) -> tuple[bool, str]:
    """Returns whether text must be lower-cased, and the reason as a sentence for the report.

    No weight file records it. The first of these that is present decides:

    1. `do_lower_case` in `tokenizer_config.json`;
    2. the normalizer in `tokenizer.json`;
    3. `do_lower_case` in `config`, the raw configuration;
    4. `uncased` or `cased` in the name of the folder, of the Hugging Face repository whose cache it
       is in, or in the configuration's `_name_or_path`;
    5. the vocabulary: a token with a capital letter, except [CLS] and the like, means cased;
    6. the default of BERT's own tokenizers, True.
    """
    config = config or {}
    said = _rules_of_files(directory).get("lowercase")
    if said is None and isinstance(config.get("do_lower_case"), bool):
        said = config["do_lower_case"], "do_lower_case in the configuration"
    said = said or _from_names(directory, config)
    if said is None and tokens is not None and any(map(_has_capital, tokens)):
        said = False, "capital letters in the vocabulary"
    if said is None:
        said = True, "the default, as nothing says otherwise"
    return said[0], f"lowercase={said[0]}, from {said[1]}."


def tokenizer_rules(directory: Path) -> dict[str, Any]:
    """Returns settings of the tokenizer, such as `strip_accents`, that its files have as bools."""
    rules = _rules_of_files(directory)
    return {rule: value for rule, (value, _) in rules.items() if rule != "lowercase"}


def _rules_of_files(directory: Path) -> dict[str, tuple[bool, str]]:
    """Returns rule -> its value, and the file that has it."""
    found = {}
    for name, keys in _RULES.items():
        said = read_if_there(directory / name)
        for (*sections, key), rule in keys.items():
            part: Any = said.get(sections[0]) if sections else said
            if isinstance(part, dict) and isinstance(part.get(key), bool):
                found[rule] = part[key], name
    return found


def _from_names(directory: Path, config: Mapping[str, Any]) -> tuple[bool, str] | None:
    directory = directory.absolute()
    # The hub's cache: models--org--name/snapshots/<revision>.
    cached = [parent.name for parent in directory.parents if parent.name.startswith("models--")]
    for name in (directory.name, *cached, str(config.get("_name_or_path", ""))):
        if "uncased" in name.lower():
            return True, f"the name {name!r}"
        if "cased" in name.lower():
            return False, f"the name {name!r}"
    return None


def _has_capital(token: str) -> bool:
    """Returns whether a token of text (no [CLS], [unused7], <s>) has a capital letter."""
    special = token.startswith(("[", "<")) and token.endswith(("]", ">"))
    return not special and token != token.lower()


def find_vocabulary(
    directory: Path, vocabulary_size: int, name: str = "vocab.txt"
) -> tuple[Path | None, tuple[str, ...] | None]:
    """Finds the vocabulary of a checkpoint: its file, and its tokens by their ids; None for either.

    `vocabulary_size` is the number of rows of the token embedding. Fewer tokens are fine (padded
    embeddings), more of them raise a ValueError.
    """
    path: Path | None = directory / name
    tokens: tuple[str, ...] | None
    if path is not None and path.is_file():
        # Not splitlines(): some tokens are line separators of Unicode.
        try:
            content = path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"`{path}` must be UTF-8. Received: {error}") from error
        tokens = tuple(content.removesuffix("\n").split("\n"))
    else:
        path, tokens = None, _tokens_of_tokenizer_json(directory / TOKENIZER)
    if tokens is not None and len(tokens) > vocabulary_size:
        raise _too_many(directory, len(tokens), vocabulary_size)
    return path, tokens


def _tokens_of_tokenizer_json(path: Path) -> tuple[str, ...] | None:
    """Returns the tokens of `tokenizer.json`, if their ids have no gaps."""
    if not path.is_file():
        return None
    model = read_json_object(path).get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict) or not vocabulary:
        return None
    tokens = sorted(vocabulary, key=lambda token: int(vocabulary[token]))
    if [vocabulary[token] for token in tokens] != list(range(len(tokens))):
        return None
    return tuple(tokens)


def byte_level_files_of(path: Path, vocabulary_size: int | None = None) -> dict[str, bytes]:
    """Returns the files of the byte-level BPE that one file stands for, by their usual names.

    `path` is a `tokenizer.json`, or a vocabulary in JSON, of any name, with `merges.txt` beside it.
    `vocabulary_size` is the number of rows of the token embedding, if there is one.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: `merges.txt` is missing, or there are more tokens than rows.
    """
    if not path.is_file():
        raise FileNotFoundError(f"`path` must be a vocabulary file. Received: path={path}")
    if path.name == TOKENIZER:
        files = {TOKENIZER: path.read_bytes()}
    elif (path.parent / MERGES).is_file():
        files = {VOCABULARY: path.read_bytes(), MERGES: (path.parent / MERGES).read_bytes()}
    else:
        raise _half(path.parent, path.name)
    if vocabulary_size is not None:
        _check_size(path, vocabulary_size)
    return files


def _check_size(path: Path, vocabulary_size: int) -> None:
    """Raises a ValueError if a vocabulary in JSON has more tokens than a token embedding rows."""
    read = read_json_object(path)
    model = read.get("model") if path.name == TOKENIZER else {"vocab": read}
    tokens = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(tokens, dict) and len(tokens) > vocabulary_size:
        raise _too_many(path.parent, len(tokens), vocabulary_size)


def _too_many(directory: Path, tokens: int, rows: int) -> ValueError:
    return ValueError(
        f"The vocabulary of `{directory}` must have at most as many tokens as the token "
        f"embedding has rows. Received: {tokens} tokens, {rows} rows"
    )


def _half(directory: Path, there: str) -> ValueError:
    return ValueError(
        f"`{directory}` must have both {VOCABULARY} and {MERGES}, or a {TOKENIZER} of type "
        f"BPE. Received: {there} alone"
    )


def write_tokenizer(checkpoint: Checkpoint, folder: Path, vocabulary: str) -> None:
    """Writes the vocabulary of a checkpoint, if it has one, or the files of its byte-level BPE.

    `vocabulary` is the name of the file with one token a line.
    """
    content = checkpoint.vocabulary_bytes()
    files = checkpoint.tokenizer_files or ({} if content is None else {vocabulary: content})
    for name, written in files.items():
        (folder / name).write_bytes(written)


def tokenizer_config(checkpoint: Checkpoint) -> dict[str, Any]:
    """Returns the content of `tokenizer_config.json`, which says how texts are split."""
    if checkpoint.tokenizer_files:
        special = {"unk": "<unk>", "sep": "</s>", "pad": "<pad>", "cls": "<s>", "mask": "<mask>"}
        return {
            "tokenizer_class": "RobertaTokenizer",
            "add_prefix_space": checkpoint.tokenizer_rules.get("add_prefix_space", False),
            "trim_offsets": checkpoint.tokenizer_rules.get("trim_offsets", True),
            "model_max_length": checkpoint.config["max_sequence_length"],
            **{f"{name}_token": token for name, token in special.items()},
            **{"bos_token": "<s>", "eos_token": "</s>"},
        }
    return {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": checkpoint.lowercase,
        "tokenize_chinese_chars": checkpoint.tokenizer_rules.get("handle_cjk", True),
        "strip_accents": checkpoint.tokenizer_rules.get("strip_accents"),
        "model_max_length": checkpoint.config["max_sequence_length"],
        **{f"{name}_token": f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")},
    }


def padding_id(checkpoint: Checkpoint) -> int | None:
    """Returns the id of the padding token of a byte-level BPE; None where it has none."""
    if VOCABULARY not in checkpoint.tokenizer_files:
        return None  # a `tokenizer.json` alone is written as it was read
    found: int | None = json.loads(checkpoint.tokenizer_files[VOCABULARY]).get("<pad>")
    return found
