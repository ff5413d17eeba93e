"""Folders of captioning models: the decoder, the network that sees images, and the subwords."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from kbert.architectures import CAPTIONERS, check_known
from kbert.checkpoints.arrays.checkpoint_files import (
    FORMAT_FILES,
    open_safetensors,
    write_safetensors,
)
from kbert.checkpoints.encoder_folder import read_about
from kbert.storage.files import MODEL_FILES, atomic_directory, sha256_of, verify_sha256
from kbert.storage.json_files import json_text

CONFIG = FORMAT_FILES["captioning"]
DECODER, EXTRACTOR, SUBWORDS = "model.safetensors", "extractor.safetensors", "subwords.model"
FORMAT_VERSION = 1
_KEYS = ("decoder", "extractor", "settings", "sha256")


@dataclass
class CaptioningCheckpoint:
    """A captioning model as arrays, with its configurations, subwords and settings.

    `decoder` and `extractor` are the configurations of the models whose weights are the two dicts
    of arrays; all are in JSON's types. `subwords` is a SentencePiece model, `architecture` a name
    of `kbert.architectures.CAPTIONERS`.
    """

    architecture: str
    decoder: dict[str, Any]
    decoder_arrays: dict[str, np.ndarray]
    extractor: dict[str, Any]
    extractor_arrays: dict[str, np.ndarray]
    subwords: bytes
    settings: dict[str, Any] = field(default_factory=dict)


def write_captioning(
    checkpoint: CaptioningCheckpoint, directory: str | os.PathLike[str], overwrite: bool = False
) -> Path:
    """Writes a folder that preserves the whole model and its dtypes.

    Raises a FileExistsError if the folder exists and `overwrite` is False.
    """
    with atomic_directory(directory, overwrite, MODEL_FILES) as folder:
        write_safetensors(folder / DECODER, checkpoint.decoder_arrays, format="kbert")
        write_safetensors(folder / EXTRACTOR, checkpoint.extractor_arrays, format="kbert")
        (folder / SUBWORDS).write_bytes(checkpoint.subwords)
        about = {
            "format_version": FORMAT_VERSION,
            "architecture": checkpoint.architecture,
            "decoder": checkpoint.decoder,
            "extractor": checkpoint.extractor,
            "settings": checkpoint.settings,
            "sha256": {n: sha256_of(folder / n) for n in (DECODER, EXTRACTOR, SUBWORDS)},
        }
        (folder / CONFIG).write_text(json_text(about), encoding="utf-8")
    return Path(directory)


def read_captioning(directory: str | os.PathLike[str]) -> CaptioningCheckpoint:
    """Reads a folder of `write_captioning`.

    Raises a ValueError if a file is damaged, or newer than this version, or the architecture is
    unknown, and a FileNotFoundError if a file is missing.
    """
    folder = Path(directory)
    if not (folder / CONFIG).is_file():
        raise FileNotFoundError(
            f"`directory` must be a folder of a captioning model, with {CONFIG}. Received: "
            f"directory={str(directory)!r}"
        )
    about = read_about(folder / CONFIG, FORMAT_VERSION)
    missing = [key for key in _KEYS if not isinstance(about.get(key), dict)]
    if missing:
        raise ValueError(
            f"`{folder / CONFIG}` must have {', '.join(_KEYS)}. Missing: {', '.join(missing)}"
        )
    check_known(about.get("architecture"), CAPTIONERS, f"`{folder / CONFIG}`")
    for name, expected in about["sha256"].items():
        verify_sha256(folder / name, expected)
    return CaptioningCheckpoint(
        architecture=about["architecture"],
        decoder=about["decoder"],
        decoder_arrays=_arrays(folder / DECODER),
        extractor=about["extractor"],
        extractor_arrays=_arrays(folder / EXTRACTOR),
        subwords=(folder / SUBWORDS).read_bytes(),
        settings=about["settings"],
    )


def is_captioning(directory: str | os.PathLike[str]) -> bool:
    """Returns whether a path is a folder of a captioner that kbert wrote."""
    return (Path(directory) / CONFIG).is_file()


def _arrays(file: Path) -> dict[str, np.ndarray]:
    with open_safetensors(file) as files:
        return {name: files.load(name) for name in files.shapes}
