"""Folders of translation models: the Transformer, its subwords, and the BERT of a fused one."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import BERT_FUSED, ENCODER_DECODERS, TRANSFORMER, check_known
from kbert.checkpoints.arrays.checkpoint import Checkpoint
from kbert.checkpoints.arrays.checkpoint_files import (
    FORMAT_FILES,
    open_safetensors,
    write_safetensors,
)
from kbert.checkpoints.encoder_folder import read_about, read_native, write_native
from kbert.storage.files import MODEL_FILES, atomic_directory, sha256_of, verify_sha256
from kbert.storage.json_files import json_text

CONFIG = FORMAT_FILES["translation"]
WEIGHTS = "model.safetensors"
SUBWORDS = {"source": "source.model", "target": "target.model"}
BERT = "bert"
SHORTLIST = "shortlist.npz"
FORMAT_VERSION = 1
_KEYS = ("transformer", "settings", "sha256")


@dataclass
class TranslationCheckpoint:
    """A translation model as arrays, with its config, subwords and search settings.

    `transformer` holds the arguments of the model's class without the encoder of a fused one, which
    is `bert`, with its vocabulary; `arrays` has none of its weights. Subwords are SentencePiece
    models, the same bytes if both languages share one. `transformer` and `settings` are in JSON's
    types, `architecture` is a name of `kbert.architectures.ENCODER_DECODERS`, and `shortlist` holds
    the arguments of a `kbert.decoding.shortlist.Shortlist`.
    """

    transformer: dict[str, Any]
    arrays: dict[str, np.ndarray]
    source_subwords: bytes
    target_subwords: bytes
    settings: dict[str, Any] = field(default_factory=dict)
    bert: Checkpoint | None = None
    architecture: str = TRANSFORMER
    shortlist: tuple[np.ndarray, np.ndarray] | None = None


def write_translation(
    checkpoint: TranslationCheckpoint, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes a folder that preserves the whole model and its dtypes.

    Raises a FileExistsError if the folder exists and `overwrite` is False.
    """
    subwords = {"source": checkpoint.source_subwords}
    if checkpoint.target_subwords != checkpoint.source_subwords:
        subwords["target"] = checkpoint.target_subwords
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        write_safetensors(folder / WEIGHTS, checkpoint.arrays, format="kbert")
        for side, model in subwords.items():
            (folder / SUBWORDS[side]).write_bytes(model)
        if checkpoint.bert is not None:
            write_native(checkpoint.bert, folder / BERT)
        files = [WEIGHTS, *(SUBWORDS[side] for side in subwords)]
        if checkpoint.shortlist is not None:
            table, tokens = checkpoint.shortlist
            np.savez_compressed(folder / SHORTLIST, translations=table, everywhere=tokens)
            files.append(SHORTLIST)
        about = {
            "format_version": FORMAT_VERSION,
            "architecture": checkpoint.architecture,
            "transformer": checkpoint.transformer,
            "settings": checkpoint.settings,
            "sha256": {name: sha256_of(folder / name) for name in files},
        }
        (folder / CONFIG).write_text(json_text(about), encoding="utf-8")
    return Path(directory)


def read_translation(directory: str | os.PathLike[str]) -> TranslationCheckpoint:
    """Reads a folder of `write_translation`.

    Raises a ValueError if a file is damaged, or newer than this version, or the architecture is
    unknown, and a FileNotFoundError if a file is missing.
    """
    folder = Path(directory)
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(
            f"`directory` must be a folder of a translation model, with {CONFIG}. Received: "
            f"directory={str(directory)!r}"
        )
    about = read_about(folder / CONFIG, FORMAT_VERSION)
    missing = [key for key in _KEYS if not isinstance(about.get(key), dict)]
    if missing:
        raise ValueError(
            f"`{folder / CONFIG}` must have {', '.join(_KEYS)}. Missing: {', '.join(missing)}"
        )
    is_fused = (folder / BERT).is_dir()
    # Folders were written without it when only a BERT beside the model distinguished two.
    architecture = about.get("architecture", BERT_FUSED if is_fused else TRANSFORMER)
    check_known(architecture, ENCODER_DECODERS, f"`{folder / CONFIG}`")
    for name, expected in about["sha256"].items():
        verify_sha256(folder / name, expected)
    with open_safetensors(folder / WEIGHTS) as files:
        arrays = {name: files.load(name) for name in files.shapes}
    shortlist = None
    if SHORTLIST in about["sha256"]:
        with np.load(folder / SHORTLIST) as files:
            shortlist = files["translations"], files["everywhere"]
    source = (folder / SUBWORDS["source"]).read_bytes()
    shared = SUBWORDS["target"] not in about["sha256"]
    return TranslationCheckpoint(
        transformer=about["transformer"],
        arrays=arrays,
        source_subwords=source,
        target_subwords=source if shared else (folder / SUBWORDS["target"]).read_bytes(),
        settings=about["settings"],
        bert=read_native(folder / BERT) if is_fused else None,
        architecture=architecture,
        shortlist=shortlist,
    )
