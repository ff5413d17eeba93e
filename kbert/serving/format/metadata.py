"""Metadata of an export, for users and for `kbert`: assets.extra/kbert.json.

TF Serving ignores the folder assets.extra. The file is read without TensorFlow.
"""

import json
import os
from pathlib import Path
from typing import Any

from kbert.storage.atomic_directory import write_atomically

# The types of numbers of an export, see `kbert.serving.export.precision`.
PRECISIONS = ("float32", "bfloat16", "int8")
METADATA_FILE = Path("assets.extra", "kbert.json")


def write_metadata(export_dir: str | os.PathLike[str], metadata: dict[str, Any]) -> None:
    """Writes the metadata of a version folder, in their order."""
    text = json.dumps(metadata, indent=2, ensure_ascii=False) + "\n"
    write_atomically(Path(export_dir) / METADATA_FILE, text)


def read_metadata(export_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the metadata of a version folder.

    Returns:
        class, name and version; labels, max_sequence_length and pair where the model has them;
        signatures: name -> inputs and outputs in order, each with name, dtype and shape; and the
        versions of kbert, Keras and TensorFlow that wrote it.

    Raises:
        FileNotFoundError: The folder is not an export of kbert.
        ValueError: The file is damaged.
    """
    file = Path(export_dir) / METADATA_FILE
    if not file.is_file():
        raise FileNotFoundError(
            f"`export_dir` must be an export of kbert, with {METADATA_FILE}. Received: "
            f"export_dir={str(export_dir)!r}"
        )
    try:
        metadata = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"`{file}` must be JSON. Received: {error}") from error
    if not isinstance(metadata, dict) or not isinstance(metadata.get("signatures"), dict):
        raise ValueError(f"`{file}` must hold an object with `signatures`. Received: {metadata!r}")
    return metadata
