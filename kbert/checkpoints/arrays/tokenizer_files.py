"""The text side of a checkpoint, by the files beside its weights: vocabulary, casing, rules.

A vocabulary is one token per line of a file, or stands in `tokenizer.json`.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert.checkpoints.arrays.json_object import read_json_object

_CONFIG = "tokenizer_config.json"
# The tokenizer's files, of which the later one counts, with their keys -> our rules.
_RULES = {
    "tokenizer.json": {
        "lowercase": "lowercase",
        "strip_accents": "strip_accents",
        "handle_chinese_chars": "handle_cjk",
    },
    _CONFIG: {
        "do_lower_case": "lowercase",
        "strip_accents": "strip_accents",
        "tokenize_chinese_chars": "handle_cjk",
    },
}


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
    """Returns `strip_accents` and `handle_cjk`, each if the tokenizer's files have it as a bool."""
    rules = _rules_of_files(directory)
    return {rule: value for rule, (value, _) in rules.items() if rule != "lowercase"}


def _rules_of_files(directory: Path) -> dict[str, tuple[bool, str]]:
    """Returns rule -> its value, and the file that has it."""
    found = {}
    for name, keys in _RULES.items():
        path = directory / name
        said: Any = read_json_object(path) if path.is_file() else {}
        said = said if name == _CONFIG else said.get("normalizer")
        for key, rule in keys.items() if isinstance(said, dict) else ():
            if isinstance(said.get(key), bool):
                found[rule] = said[key], name
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
        tokens = tuple(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    else:
        path, tokens = None, _tokens_of_tokenizer_json(directory / "tokenizer.json")
    if tokens is not None and len(tokens) > vocabulary_size:
        raise ValueError(
            f"The vocabulary of `{directory}` must have at most as many tokens as the token "
            f"embedding has rows. Received: {len(tokens)} tokens, {vocabulary_size} rows"
        )
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
