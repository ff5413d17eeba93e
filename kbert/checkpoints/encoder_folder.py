"""kbert's own folders: `kbert.json`, `model.safetensors` and the tokenizer's files."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import BERT, ENCODERS, check_known, encoder_layout
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.checkpoint_files import (
    FORMAT_FILES,
    open_safetensors,
    write_safetensors,
)
from kbert.checkpoints.arrays.tokenizer_files import (
    byte_level_files,
    find_vocabulary,
    write_tokenizer,
)
from kbert.storage.files import MODEL_FILES, atomic_directory
from kbert.storage.json_files import json_text, read_json_object

CONFIG = FORMAT_FILES["kbert"]
WEIGHTS = "model.safetensors"
VOCABULARY = "vocabulary.txt"
FORMAT_VERSION = 1
_HEAD = "heads/"
_ADAPTER = "adapters/"
_FEATURES = "features/"
_KEYS = ("format_version", "config", "lowercase", "source_config")


def write_native(
    checkpoint: Checkpoint, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes a folder in kbert's own format, which preserves the whole checkpoint and its dtypes.

    Raises a ValueError if the arrays do not fit the configuration, and a FileExistsError if the
    folder exists and `overwrite` is False.
    """
    layout = encoder_layout(checkpoint.architecture)
    layout.check_config(checkpoint.config, "`checkpoint`")
    layout.check_arrays(checkpoint.config, checkpoint.arrays, "`checkpoint`")
    about: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "architecture": checkpoint.architecture,
        "config": checkpoint.config,
        "lowercase": checkpoint.lowercase,
        "source_config": checkpoint.source_config,
        "pipeline": checkpoint.pipeline,
        "tokenizer_rules": checkpoint.tokenizer_rules,
    }
    if checkpoint.unread_tokenizer is not None:
        about["unread_tokenizer"] = checkpoint.unread_tokenizer
    more = {f"{_HEAD}{name}": array for name, array in checkpoint.heads.items()}
    more |= {f"{_ADAPTER}{name}": array for name, array in checkpoint.adapters.items()}
    if checkpoint.adapter_config:
        about["adapters"] = checkpoint.adapter_config
    if checkpoint.features:
        about["features"] = checkpoint.features["config"]
        arrays = checkpoint.features["arrays"]
        more |= {f"{_FEATURES}{name}": array for name, array in arrays.items()}
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        (folder / CONFIG).write_text(json_text(about), encoding="utf-8")
        write_safetensors(folder / WEIGHTS, checkpoint.arrays | more, format="kbert")
        write_tokenizer(checkpoint, folder, VOCABULARY)
    return Path(directory)


def read_native(directory: str | os.PathLike[str]) -> Checkpoint:
    """Reads a folder in kbert's own format.

    Raises a ValueError if a file is damaged or newer than this version, the architecture is
    unknown, or weights are missing, unknown or of a wrong shape, and a FileNotFoundError if a file
    is missing.
    """
    directory = Path(directory)
    source = f"`{directory / CONFIG}`"
    about = read_about(directory / CONFIG, FORMAT_VERSION)
    missing = [key for key in _KEYS if key not in about]
    if missing or not isinstance(about["config"], dict):
        raise ValueError(f"{source} must have {', '.join(_KEYS)}. Missing: {', '.join(missing)}")
    config, architecture = about["config"], about.get("architecture", BERT)
    check_known(architecture, ENCODERS, source)
    layout = encoder_layout(architecture)
    layout.check_config(config, source)
    groups: dict[str, dict[str, np.ndarray]] = {
        name: {} for name in (_HEAD, _ADAPTER, _FEATURES, "")
    }
    with open_safetensors(directory / WEIGHTS) as files:
        for name in files.shapes:
            group = next(prefix for prefix in groups if name.startswith(prefix))
            groups[group][name.removeprefix(group)] = files.load(name)
    layout.check_arrays(config, groups[""], f"`{directory / WEIGHTS}`")
    features = about.get("features")
    vocabulary_path, _ = find_vocabulary(directory, config["vocabulary_size"], VOCABULARY)
    return Checkpoint(
        config=config,
        architecture=architecture,
        arrays=groups[""],
        heads=groups[_HEAD],
        vocabulary_path=vocabulary_path,
        lowercase=bool(about["lowercase"]),
        source_config=about["source_config"],
        pipeline=about.get("pipeline", {}),
        tokenizer_rules=about.get("tokenizer_rules", {}),
        tokenizer_files=byte_level_files(directory),
        unread_tokenizer=about.get("unread_tokenizer"),
        adapters=groups[_ADAPTER],
        adapter_config=about.get("adapters", {}),
        features={"config": features, "arrays": groups[_FEATURES]} if features else {},
    )


def read_about(path: Path, format_version: int) -> dict[str, Any]:
    """Reads the JSON file that describes a folder of kbert; its version must be the given one."""
    about = read_json_object(path)
    if about.get("format_version") != format_version:
        raise ValueError(
            f"`{path}`: `format_version` must be {format_version}, which this version of kbert "
            f"reads. Received: format_version={about.get('format_version')!r}"
        )
    return about
