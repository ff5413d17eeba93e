"""Casing of a checkpoint's text: no weight file records it, but the files beside it may."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kbert.checkpoints.arrays.json_object import read_json_object

_CONFIG = "tokenizer_config.json"


def resolve_lowercase(
    directory: Path,
    config: Mapping[str, Any] | None = None,
    tokens: Sequence[str] | None = None,
) -> tuple[bool, str]:
    """Determines whether text must be lower-cased for a checkpoint.

    The first of these that is present decides:

    1. `do_lower_case` in `tokenizer_config.json`;
    2. the normalizer in `tokenizer.json`;
    3. `do_lower_case` in the configuration;
    4. `uncased` or `cased` in the name of the folder, of the Hugging Face repository whose cache it
       is in, or in the configuration's `_name_or_path`;
    5. the vocabulary: a token with a capital letter, except [CLS] and the like, means cased;
    6. the default of BERT's own tokenizers, True.

    Args:
        directory: The folder of the checkpoint.
        config: Its raw configuration.
        tokens: Its vocabulary.

    Returns:
        The answer, and a sentence for the report with the reason.
    """
    said = _from_tokenizer_files(directory)
    if said is None and config and isinstance(config.get("do_lower_case"), bool):
        said = bool(config["do_lower_case"]), "do_lower_case in the configuration"
    if said is None:
        said = _from_names(directory, config or {})
    if said is None and tokens is not None and any(map(_has_capital, tokens)):
        said = False, "capital letters in the vocabulary"
    if said is None:
        said = True, "the default, as nothing says otherwise"
    return said[0], f"lowercase={said[0]}, from {said[1]}."


def tokenizer_rules(directory: Path) -> dict[str, Any]:
    """Reads the rules for accents and Chinese characters from Hugging Face's tokenizer files.

    Args:
        directory: The folder of the checkpoint.

    Returns:
        `strip_accents` and `handle_cjk`, each if the files have it as a bool.
    """
    found: dict[str, Any] = {}
    files = {"tokenizer.json": "handle_chinese_chars", _CONFIG: "tokenize_chinese_chars"}
    for name, cjk in files.items():
        path = directory / name
        told: Any = read_json_object(path) if path.is_file() else {}
        told = told if name == _CONFIG else told.get("normalizer")
        for key, rule in (("strip_accents", "strip_accents"), (cjk, "handle_cjk")):
            if isinstance(told, dict) and isinstance(told.get(key), bool):
                found[rule] = told[key]
    return found


def _from_tokenizer_files(directory: Path) -> tuple[bool, str] | None:
    """Reads the casing from the tokenizer's own files."""
    path = directory / _CONFIG
    if path.is_file():
        value = read_json_object(path).get("do_lower_case")
        if isinstance(value, bool):
            return value, _CONFIG
    path = directory / "tokenizer.json"
    if path.is_file():
        normalizer = read_json_object(path).get("normalizer")
        value = normalizer.get("lowercase") if isinstance(normalizer, dict) else None
        if isinstance(value, bool):
            return value, "tokenizer.json"
    return None


def _from_names(directory: Path, config: Mapping[str, Any]) -> tuple[bool, str] | None:
    """Infers the casing from the names of the folder and of its origin."""
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
