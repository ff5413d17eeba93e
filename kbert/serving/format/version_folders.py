"""Folders of exports, BASE/<model>/<version>/, in the layout of TF Serving, and their metadata.

TF Serving takes each folder of a model whose name is a 64-bit integer for a version, and serves the
highest. It ignores other names, and the folder assets.extra, whose kbert.json is for users and for
`kbert`. Source: tensorflow/serving, `sources/storage_path/file_system_storage_path_source.cc`.
"""

import os
import re
from pathlib import Path
from typing import Any

from kbert.storage.files import remove_atomically, write_atomically
from kbert.storage.json_files import json_text, read_json_object

# The types of numbers of an export, see `kbert.serving.precision`.
PRECISIONS = ("float32", "bfloat16", "int8")
METADATA_FILE = Path("assets.extra", "kbert.json")
SAVED_MODEL_FILE = "saved_model.pb"
# Files of BASE, see `kbert.serving.export.base_files`.
MODEL_CONFIG = "model.config"
MONITORING_CONFIG = "monitoring.config"
README = "README.md"
# Not digits alone: that is the name of a version.
_MODEL_NAME = re.compile(r"(?!\d+$)[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VERSION = re.compile(r"[0-9]+")
_LARGEST_VERSION = 2**63 - 1


def versions(folder: str | os.PathLike[str]) -> dict[int, Path]:
    """Returns version -> folder, complete or not, of BASE/<model>; lowest first."""
    path = Path(folder)
    children = path.iterdir() if path.is_dir() and os.access(path, os.R_OK | os.X_OK) else ()
    found = {int(child.name): child for child in children if is_version(child.name)}
    return dict(sorted(found.items()))


def complete_versions(folder: str | os.PathLike[str]) -> dict[int, Path]:
    """Returns the versions of BASE/<model> that hold a saved_model.pb, lowest first.

    One that may not be read is none.
    """
    return {
        number: path
        for number, path in versions(folder).items()
        if os.access(path, os.X_OK) and (path / SAVED_MODEL_FILE).is_file()
    }


def is_version(name: str) -> bool:
    """Returns whether a server takes a folder of this name for a version."""
    return bool(_VERSION.fullmatch(name)) and int(name) <= _LARGEST_VERSION


def model_name(folder: str | os.PathLike[str]) -> str:
    """Returns the default name on a server of a model in a folder, or of a published name.

    It is the last part without `.keras`, with `_` for characters that `new_version` does not allow.
    """
    last = Path(os.path.abspath(folder)).name.removesuffix(".keras")
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", last)
    return name if _MODEL_NAME.fullmatch(name) else f"model_{name.lstrip('.-')}"


def new_version(
    base: str | os.PathLike[str], name: str, version: int | None = None
) -> tuple[Path, int]:
    """Returns BASE/<name>/<version>, which does not exist, and the version.

    Without a version it is one more than the highest, or 1. Raises ValueError for an invalid name
    or version, or a `base` that is a model's own folder; NotADirectoryError if `base` is a file;
    TypeError if it is no path; and FileExistsError if the version exists, or BASE/<name> is a file.
    """
    if not isinstance(name, str) or not _MODEL_NAME.fullmatch(name):
        raise ValueError(
            "`name` must be made of letters, digits, `_`, `-` and `.`, not of digits alone, and "
            f"not begin with `-` or `.`. Received: name={name!r}"
        )
    if not isinstance(base, str | os.PathLike) or not os.fspath(base):
        raise TypeError(f"`base` must be the path of a folder. Received: base={base!r}")
    _check_base(Path(base))
    folder = Path(base) / name
    if name in (MODEL_CONFIG, MONITORING_CONFIG, README) or folder.is_file():
        raise FileExistsError(f"`name` must not be that of a file of `base`. Received: {folder}")
    present = versions(folder)
    if version is None:
        version = max(present, default=0) + 1
    is_number = isinstance(version, int) and not isinstance(version, bool)
    if not is_number or not 0 < version <= _LARGEST_VERSION:
        raise ValueError(
            "`version` must be an integer of at least 1, below 2**63. "
            f"Received: version={version!r}"
        )
    if version in present:
        raise FileExistsError(
            "`version` must not be there yet: a server may be reading it. "
            f"Received: version={version}, which is {present[version]}. "
            f"The next free one is {max(present) + 1}"
        )
    return folder / str(version), version


def _check_base(base: Path) -> None:
    if base.exists() and not base.is_dir():
        raise NotADirectoryError(f"`base` must be a folder. Received: {base}, a file")
    if (base / SAVED_MODEL_FILE).is_file():
        what, above = "a version of an export", base.parent.parent
    elif complete_versions(base):
        what, above = "a model with its versions", base.parent
    elif (base / "metrics.json").is_file() and (base / "config.yaml").is_file():
        what, above = "a run", Path("exports")
    else:
        return
    raise ValueError(
        f"`base` must be a folder of models, such as {above}. Received: {base}, which is {what}"
    )


def remove_old_versions(
    folder: str | os.PathLike[str], keep: int | None, spare: int | None = None
) -> list[int]:
    """Removes and returns the lowest versions of BASE/<model>, but `spare`, and the highest `keep`
    that are complete with what is above the lowest of these.
    """
    complete = list(complete_versions(folder))
    if keep is None or len(complete) <= keep:
        return []
    old = {
        number: path
        for number, path in versions(folder).items()
        if number < complete[-keep] and number != spare and path.is_dir()
    }
    for path in old.values():
        remove_atomically(path)
    return list(old)


def find_export(path: str | os.PathLike[str], argument: str = "path") -> Path:
    """Finds the version folder of BASE/<model>/<version>, or of BASE/<model>'s highest version.

    The FileNotFoundError for a path without one, which it names as `argument`, lists what exists.
    """
    folder = Path(path)
    if (folder / SAVED_MODEL_FILE).is_file():
        return folder
    complete = complete_versions(folder)
    if complete:
        return complete[max(complete)]
    if not folder.is_dir():
        found = "no such folder"
    else:
        models = [model.name for model in exports_in(folder)]
        found = f"a folder of the models {models}: name one" if models else "a folder without one"
    raise FileNotFoundError(
        f"`{argument}` must be an export, BASE/<model> or BASE/<model>/<version> with a "
        f"{SAVED_MODEL_FILE}. Received: {str(path)!r}, {found}"
    )


def exports_in(base: str | os.PathLike[str]) -> list[Path]:
    """Returns BASE/<model> for each model with versions, complete or not, by name."""
    folder = Path(base)
    children = folder.iterdir() if folder.is_dir() and os.access(folder, os.R_OK | os.X_OK) else ()
    return sorted(child for child in children if versions(child))


def write_metadata(export_dir: str | os.PathLike[str], metadata: dict[str, Any]) -> None:
    """Writes the metadata of a version folder, in their order."""
    write_atomically(Path(export_dir) / METADATA_FILE, json_text(metadata))


def read_metadata(export_dir: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads the metadata of a version folder.

    These are class, name and version; labels, max_sequence_length and pair where the model has
    them; signatures: name -> inputs and outputs in order, each with name, dtype and shape; and the
    versions of kbert, Keras and TensorFlow that wrote it. Raises FileNotFoundError for a folder
    that is not an export of kbert, and ValueError for a damaged file.
    """
    file = Path(export_dir) / METADATA_FILE
    if not file.is_file():
        raise FileNotFoundError(
            f"`export_dir` must be an export of kbert, with {METADATA_FILE}. Received: "
            f"export_dir={str(export_dir)!r}"
        )
    metadata = read_json_object(file)
    if not isinstance(metadata.get("signatures"), dict):
        raise ValueError(f"`{file}` must hold an object with `signatures`. Received: {metadata!r}")
    return metadata
